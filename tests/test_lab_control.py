"""The lab's language model and an independent script in plain torch agree within the noise of seeds."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from posenc.lab.experiment import Trial
from posenc.lab.records.record import Record
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.training import run_trial

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "examples" / "plain_torch_control.py"
STEPS, SEEDS, LENGTHS = 250, 3, (64, 128, 256)


def documents(count: int, first: int) -> bytes:
    from posenc.lab.text import prose

    return b"".join(prose.tale(2 * number) for number in range(first, first + count))  # English


def mean_bits(record: Record, length: int) -> float:
    rows = [row for row in record.rows.to_pylist()
            if (row["kind"], row["length"], row["mode"]) == ("bits", length, "same targets")]  # fmt: skip
    return sum(row["value"] * row["weight"] for row in rows) / sum(row["weight"] for row in rows)


def test_the_control_imports_nothing_of_posenc() -> None:
    assert "posenc" not in [line.split()[1].split(".")[0] for line in SCRIPT.read_text("utf-8").splitlines()
                            if line.startswith(("import ", "from "))]  # fmt: skip


@pytest.mark.acceptance
def test_the_lab_agrees_with_plain_torch(tmp_path: Path) -> None:
    """The means differ by less than three standard errors of their difference, and 0.03 bits for other windows."""
    train, held_out = documents(150, 0), documents(30, 200)
    for name, text in (("train", train), ("held_out", held_out)):
        (tmp_path / name).write_bytes(text)
    command = [sys.executable, str(SCRIPT), str(tmp_path / "train"), str(tmp_path / "held_out")]
    command += ["--steps", str(STEPS), "--seeds", str(SEEDS), "--lengths", *map(str, LENGTHS)]
    theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    text = Corpus("tales", "0" * 64, (train,), (held_out,))
    task = {"name": "language_model", "length": 64, "lengths": LENGTHS, "held_out": 10_000, "cut_up": "longest"}
    size = {"d_model": 64, "n_heads": 4, "n_layers": 2}
    training = {"steps": STEPS, "rows": 16, "learning_rate": 8e-3}
    ours: dict[str, dict[int, list[float]]] = {}
    for encoding in ("nope", "rope", "alibi"):
        records = [
            run_trial(Trial.model_validate({"task": task, "encoding": encoding, "seed": seed, "size": size,
                                            "training": training}), text)
            for seed in range(SEEDS)
        ]  # fmt: skip
        ours[encoding] = {length: [mean_bits(one, length) for one in records if one is not None] for length in LENGTHS}
    for encoding, by_length in ours.items():
        for length, mine in by_length.items():
            other = theirs[encoding][str(length)]
            error = (statistics.variance(mine) / SEEDS + statistics.variance(other) / SEEDS) ** 0.5
            assert abs(statistics.mean(mine) - statistics.mean(other)) < 3 * error + 0.03, (encoding, length, mine, other)
    assert statistics.mean(ours["rope"][256]) > statistics.mean(ours["rope"][64]) + 0.3  # both see RoPE break
    assert abs(statistics.mean(ours["alibi"][256]) - statistics.mean(ours["alibi"][64])) < 0.1
