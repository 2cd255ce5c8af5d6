"""The oracles can fail: breaking a formula turns one of them red. The full run is `python tests/mutations/run.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "mutations"))
import run as harness

sys.path.pop(0)
RUN = Path(harness.__file__)
MUTATIONS = harness.load(RUN.with_name("catalogue.py"))


def told(*arguments: str) -> tuple[int, dict]:
    """Exit code and JSON of a run in a process of its own, since this one has imported the unbroken package."""
    done = subprocess.run([sys.executable, str(RUN), "--json", *arguments], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-2000:]
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_every_text_to_break_occurs_exactly_once():
    stale = [(one.file, one.old, harness.occurrences(one)) for one in MUTATIONS if harness.occurrences(one) != 1]
    assert stale == []


def test_every_encoding_and_every_part_is_broken_in_several_ways():
    per_file = {file: sum(one.file == file for one in MUTATIONS) for file in {one.file for one in MUTATIONS}}
    encodings = {f"encodings/{path.name}" for path in (harness.SOURCE / "encodings").glob("*.py")}
    for file in encodings - {"encodings/__init__.py", "encodings/nope.py"}:  # NoPE is the base class: encoding.py
        assert per_file.get(file, 0) >= 6, f"{file}: {per_file.get(file, 0)} mutations"
    core = (
        "encoding.py",
        "positions.py",
        "kernels/sin_cos/__init__.py",
        "frequencies/base.py",
        "layouts.py",
        "attention.py",
        "attention_module.py",
    )
    for file in core:
        assert per_file[file] >= 6
    assert all(one.old != one.new for one in MUTATIONS)
    assert len({(one.file, one.old, one.new) for one in MUTATIONS}) == len(MUTATIONS)
    for one in MUTATIONS:
        for test in one.tests:
            assert (harness.ORACLES / test).exists(), test


def catalogue(tmp_path: Path, *mutations: tuple[str, str, str]) -> str:
    """Another list for the harness, about alibi.py."""
    path = tmp_path / "catalogue.py"
    path.write_text(f"TESTS = {{}}\nMUTATIONS = {{'encodings/alibi.py': {list(mutations)!r}}}\n", encoding="utf-8")
    return str(path)


def test_a_harmless_change_survives_and_a_lost_text_is_stale(tmp_path):
    """The harness itself can fail: both are reported, and the exit code says so."""
    harmless = ("delta.abs() * -slopes[:, None]", "-slopes[:, None] * delta.abs()", "nothing")
    code, result = told("--list", catalogue(tmp_path, harmless, ("no such text", "", "nothing either")))
    verdicts = {one["breaks"]: one["verdict"] for one in result["outcomes"]}
    assert verdicts == {"unbroken": "survived", "nothing": "survived", "nothing either": "stale"}
    assert (code, result["tried"], result["caught"]) == (1, 2, 0)


def test_a_sample_is_caught():
    code, result = told("--sample", "1", "--seed", "2")
    assert [one for one in result["outcomes"] if one["verdict"] != "caught" and one["breaks"] != "unbroken"] == []
    assert (code, result["caught"]) == (0, 1)


@pytest.mark.acceptance
def test_every_mutation_is_caught():
    code, result = told()
    assert [one for one in result["outcomes"] if one["verdict"] != "caught" and one["breaks"] != "unbroken"] == []
    assert (code, result["caught"]) == (0, len(MUTATIONS))
