"""What a repeated trial says of a difference: rounding of other hardware, or a fault.

The trials are made up, so that the numbers, the processor and torch of the record can be chosen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from in_process import posenc
from lab_sweeps import Here, experiment, made_up, made_up_sweep
from posenc import kernels
from posenc.kernels import processor
from posenc.lab.records import provenance
from posenc.lab.records.fingerprint import SOURCES, fingerprint
from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder
from posenc.lab.records.surroundings import Surrounding, capability
from posenc.lab.run import repeat as repeating
from posenc.lab.trial.training import Hardware

WORDS = ("lab", "repeat", "copy", "rope", "seed", "0")
EVERY_AVX = frozenset({"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made_up_sweep(tmp_path, experiment=experiment(seeds=1, encodings=("rope",)))
    results = Folder(tmp_path)
    results.put_experiment({**(results.experiment() or {}), "command": "posenc lab run tiny.yaml"})
    return tmp_path


def scores(**values: float) -> Callable[..., Record]:
    return lambda *given: made_up(*given, **{"bits": 2.0, "exact": 0.5, **values})


@pytest.fixture
def repeat(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`repeat(exact=0.9)`: the command, where a new training gives that score; the stored one is .5."""
    real = repeating.run_again

    def repeat(
        *arguments: str, words: tuple[str, ...] = WORDS, width: str = "120", **values: float
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(repeating, "Local", lambda workers: Here())
        monkeypatch.setattr(repeating, "run_again", lambda *given: real(*given, scores(**values)))
        return posenc(*words, "--in", str(folder), *arguments, COLUMNS=width)

    return repeat


def trial_of(folder: Path) -> tuple[Path, Record]:
    (path,) = (folder / "trials").glob("copy-rope-*")
    return path, Record.from_parquet(path.read_bytes())


def rewritten(folder: Path, part: str, **changed: str | None) -> None:
    """The stored record says something else about its machine or its provenance; None removes it."""
    path, record = trial_of(folder)
    about = {name: value for name, value in {**record.about[part], **changed}.items() if value is not None}
    path.write_bytes(Record({**record.about, part: about}, record.rows).to_parquet())


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_record_names_its_processor_and_the_instructions_of_the_kernels(folder: Path) -> None:
    machine = trial_of(folder)[1].about["machine"]
    assert machine["kernels"] == (kernels.instructions() or "plain torch")
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            name, _, value = (part.strip() for part in line.partition(":"))
            if name in ("model name", "cpu family", "model", "stepping"):
                assert value in machine["cpu_model"]


@pytest.mark.parametrize(
    ("part", "changed", "exact", "code", "verdict", "words"),
    [
        ("machine", {}, 0.5, 0, "same bits", "equal bit for bit"),
        ("machine", {}, 0.55, 0, "within tolerance", "That the bits differ is no rounding: torch, the instruction set and"),
        ("machine", {}, 0.9, 1, "fault", "A fault: this is no rounding: torch, the instruction set and"),
        ("machine", {"kernels": "avx1"}, 0.9, 1, "fault", "A fault"),  # they give the same bits with all instructions
        ("machine", {"kernels": None}, 0.9, 1, "fault", "A fault"),
        ("machine", {"cpu_model": "Z80"}, 0.5, 0, "same bits", "equal bit for bit"),
        ("machine", {"cpu_model": "Z80"}, 0.55, 0, "within tolerance", "That the bits differ may be rounding: cpu_model"),
        ("machine", {"cpu_model": "Z80"}, 0.9, 3, "undecided", "instead of Z80"),
        ("machine", {"cpu_model": None}, 0.9, 3, "undecided", "Not decided: this may be rounding: cpu_model not recorded"),
        ("provenance", {"device": "x86_64 AVX1"}, 0.9, 3, "undecided", "instead of x86_64 AVX1"),
        ("provenance", {"torch": "1.0"}, 0.9, 3, "undecided", "instead of 1.0"),
    ],
)
def test_the_verdict(
    folder: Path, repeat: Any, part: str, changed: dict[str, str | None], exact: float, code: int, verdict: str, words: str
) -> None:
    rewritten(folder, part, **changed)
    before = trial_of(folder)[0].read_bytes()
    done = repeat("--json", exact=exact)
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (code, verdict), done.stderr
    assert (found["bit_for_bit"], found["same"]) == (verdict == "same bits", code == 0)
    assert words in flat(done.stderr)
    assert ("to decide" in done.stderr, found["to_decide"] is not None) == (code == 3, code == 3)
    said = {one["name"]: one for one in found["surroundings"]}
    assert list(said) == ["torch", "device", "cpu_model", "kernels"]
    assert all(said[name]["stored"] == value for name, value in changed.items())
    assert trial_of(folder)[0].read_bytes() == before


def test_a_training_that_failed_elsewhere_is_not_called_a_fault(folder: Path, repeat: Any) -> None:
    path, record = trial_of(folder)
    path.write_bytes(Record({**record.about, "failed": "the loss became NaN"}, record.rows).to_parquet())
    assert repeat().returncode == 1
    rewritten(folder, "machine", cpu_model=None)
    done = repeat()
    assert done.returncode == 3
    assert "one of the two trainings failed. Not decided" in flat(done.stderr)


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_table_says_what_is_stored_and_what_is_here(folder: Path, repeat: Any, width: str) -> None:
    rewritten(folder, "machine", cpu_model=None, kernels="avx1")
    shown = repeat(exact=0.9, width=width).stdout
    assert max(map(len, shown.splitlines())) <= int(width)
    assert re.search(r"cpu_model +not recorded +\S", shown)
    assert re.search(r"kernels +avx1 +\S+( torch)? ≠", shown)
    assert "…" not in shown


@pytest.mark.parametrize(
    ("stored", "here", "features", "wanted"),
    [
        ("x86_64 AVX512", "x86_64 AVX2", EVERY_AVX, "avx512"),  # ATEN_CPU_CAPABILITY=avx2 is set here
        ("x86_64 AVX512", "x86_64 AVX2", {"avx2", "fma"}, None),  # this machine cannot
        ("x86_64 AVX2", "x86_64 AVX512", EVERY_AVX, "avx2"),
        ("x86_64 DEFAULT", "x86_64 AVX512", EVERY_AVX, "default"),
        ("x86_64 AVX512", "x86_64 AVX512", EVERY_AVX, None),
        ("aarch64 DEFAULT", "x86_64 AVX512", EVERY_AVX, None),
        ("NVIDIA H100", "x86_64 AVX512", EVERY_AVX, None),
        (None, "x86_64 AVX512", EVERY_AVX, None),
    ],
)
def test_a_machine_that_can_is_asked_to_use_the_instructions_of_the_record(
    monkeypatch: pytest.MonkeyPatch, stored: str | None, here: str, features: set[str], wanted: str | None
) -> None:
    monkeypatch.setattr(processor, "features", lambda: features)
    assert capability([Surrounding("torch", "2", "2"), Surrounding("device", stored, here)]) == wanted


def test_the_command_that_decides(folder: Path, repeat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the instructions of the record; then the kernels, if the code is the record's; else the code of the record."""
    key = trial_of(folder)[1].about["key"][:9]
    again = f"posenc lab repeat {key} --in {folder} --tolerance 0.0"
    rewritten(folder, "machine", cpu_model=None)
    done = repeat("--tolerance", "0", exact=0.51)
    assert f"POSENC_WITHOUT_KERNELS=1 {again}." in flat(done.stderr)
    rewritten(folder, "provenance", fingerprint="0ld" * 5 + "0", revision="c0de-dirty")
    done = repeat("--tolerance", "0", exact=0.51)
    assert f"git checkout c0de, then {again} --json." in flat(done.stderr)
    assert "the code has changed since" in flat(done.stderr)
    monkeypatch.setattr(processor, "features", lambda: EVERY_AVX)
    monkeypatch.setattr(provenance.platform, "machine", lambda: "x86_64")
    rewritten(folder, "provenance", device="x86_64 AVX2")
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX512")
    done = repeat("--tolerance", "0", exact=0.51)
    assert f"ATEN_CPU_CAPABILITY=avx2 {again}" in flat(done.stderr)


def test_one_bit_is_a_difference() -> None:
    trial = experiment().trials()[0]
    one, other = (made_up(trial, None, Hardware(), lambda _: None, bits=bits) for bits in (2.0, 2.0000002))
    assert repeating.differences(one, one) == ()
    assert len(repeating.differences(one, other)) == 1
    longer = made_up(trial, None, Hardware(), lambda _: None, bits=2.0, exact=0.5)
    assert repeating.differences(longer, one) == ("other rows: 2 instead of 1",)
    failed = Record({**one.about, "failed": "the loss became NaN or infinite at step 3"}, one.rows)
    assert repeating.differences(failed, one) == ("failed: 'the loss became NaN or infinite at step 3' instead of None",)


def test_other_code_of_the_lab_the_encoding_or_the_task_is_told_apart(tmp_path: Path) -> None:
    """One more line in a file of the trial's changes the short hash, one in any other file does not."""
    package = Path(shutil.copytree(SOURCES, tmp_path / "posenc", ignore=shutil.ignore_patterns("*.so", "__pycache__")))
    rope = next(trial for trial in experiment().trials() if trial.encoding == "rope" and trial.task.name == "copy")
    before = fingerprint(rope, package)
    assert before == fingerprint(rope)
    for name, counts in (
        ("lab/trial/scoring.py", True),
        ("encodings/rope.py", True),
        ("lab/tasks/copy.py", True),
        ("encodings/alibi.py", False),
        ("lab/tasks/recall.py", False),
        ("lab/report/page.py", False),
    ):
        text = (package / name).read_text("utf-8")
        (package / name).write_text(f"{text}\nmore = 1\n", "utf-8")
        assert (fingerprint(rope, package) != before) == counts, name
        (package / name).write_text(text, "utf-8")


@pytest.mark.skipif(not EVERY_AVX & processor.features(), reason="this processor has one instruction set")
def test_a_record_says_which_instructions_torch_used_not_which_there_are() -> None:
    imports = "from posenc.lab.records.provenance import environment; from posenc.lab.trial.training import Hardware"
    wanted = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    command = [sys.executable, "-c", f"{imports}; print(environment(Hardware())['device'])"]
    done = subprocess.run(command, env=wanted, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(" DEFAULT")
