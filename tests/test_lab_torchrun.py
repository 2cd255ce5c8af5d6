"""Two processes under torchrun train the model that one process trains, whether they share the rows or the sequence."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lightning_fabric")

import torch

from posenc.lab import tasks
from posenc.lab.experiment import Size, Training, Trial
from posenc.lab.records.record import Record
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.training import Hardware, run_trial
from posenc.positions import Positions

TEXT = bytes(random.Random(0).choices(b"the cat sat on a mat; ", k=3000))
CORPUS = Corpus("made up", "0" * 64, (TEXT[:2000],), (TEXT[2000:],))
SHARDS = ("rows", "sequence")
SCRIPT = """
import sys
import test_lab_torchrun as own

own.part(sys.argv[1])
own.torch.distributed.destroy_process_group()  # a thread of gloo that still runs at exit aborts its process
"""


def trials() -> dict[str, Trial]:
    """3 rows for 2 processes; copy asks nothing in the first part of the sequence and has odd lengths; masked bytes fall
    unevenly. Relative biases, rotations and absolute positions read a sharded sequence in different ways.
    """
    copy = tasks.load("copy")(length=5, lengths=(5, 9), held_out=8)
    masked = tasks.load("masked_language_model")(length=17, lengths=(17, 24), held_out=8, targets=9)

    def trial(task: object, word: str) -> Trial:
        training = Training(steps=12, rows=3, learning_rate=1e-2)
        return Trial(task=task, encoding=word, seed=1, size=Size(d_model=16, n_heads=2), training=training)

    causal = [(copy, word) for word in ("rope", "alibi", "shaw", "learned+randomized")]
    made = [trial(*one) for one in [*causal, (masked, "sinusoidal"), (masked, "t5")]]
    return {str(one): one for one in made}


def part(out: str) -> None:
    """What a process of torchrun does."""
    torch.set_num_threads(1)
    for name, trial in trials().items():
        for how in (*SHARDS, "restarting"):
            with restarting() if how == "restarting" else contextlib.nullcontext():
                record = run_trial(trial, CORPUS, Hardware(devices=2, shard="rows" if how == "rows" else "sequence"))
            assert (record is None) == (os.environ["RANK"] != "0")
            if record is not None:
                Path(out, f"{name} {how}.parquet").write_bytes(record.to_parquet())


@contextlib.contextmanager
def restarting() -> Iterator[None]:
    """Broken on purpose: every process counts its part of the sequence from 0."""
    right = Positions.shard
    Positions.shard = lambda at, rank, size: right(at, 0, size)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Positions.shard = right  # type: ignore[method-assign]


def numbers(record: Record) -> dict[tuple[object, ...], float]:
    """Bits of items and the training curve: those that are continuous in the weights."""
    return {
        (row["kind"], row["length"], row["item"], row["step"]): row["value"]
        for row in record.rows.to_pylist()
        if row["kind"] in ("bits", "curve")
    }


def largest_difference(one: Record, other: Record) -> float:
    ours, theirs = numbers(one), numbers(other)
    assert ours.keys() == theirs.keys()
    return max(abs(ours[key] - theirs[key]) for key in ours)


@pytest.fixture(scope="module")
def alone() -> Iterator[dict[str, Record]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {name: run_trial(trial, CORPUS) for name, trial in trials().items()}  # type: ignore[misc]
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    out = tmp_path_factory.mktemp("torchrun")
    script = out / "part.py"
    script.write_text(SCRIPT)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
        str(out),
    ]
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return {file.stem: Record.from_parquet(file.read_bytes()) for file in out.glob("*.parquet")}


@pytest.mark.acceptance
@pytest.mark.parametrize("name", trials())
def test_two_processes_train_the_model_of_one(alone: dict[str, Record], together: dict[str, Record], name: str) -> None:
    assert {kind for kind, *_ in numbers(alone[name])} == {"bits", "curve"}
    for shard in SHARDS:
        assert largest_difference(together[f"{name} {shard}"], alone[name]) < 1e-5, shard
    broken = largest_difference(together[f"{name} restarting"], alone[name])
    assert broken > 3e-4  # so the measure tells a right sharding from positions that restart on every process


def test_devices_that_torchrun_did_not_start_are_refused() -> None:
    with pytest.raises(ValueError, match="torchrun --nproc-per-node 2"):
        run_trial(next(iter(trials().values())), None, Hardware(devices=2))
