"""Which code a result belongs to: what a trial runs through counts, and nothing that is written for readers does."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import experiment
from posenc.lab.experiment import Trial, read_experiment
from posenc.lab.records.fingerprint import (
    COMPILED,
    FOR_READERS,
    TRAINING,
    compiled,
    fingerprint,
    fingerprint_of,
    modules_of,
)
from posenc.lab.records.import_closure import ROOT, SOURCES, file_of, is_module
from sampling import a_third, first_only, one_in

TRIAL = experiment().trials()[0]
STANDARD = {(trial.task.name, trial.encoding): trial for trial in read_experiment("standard").trials()}
ALIBI = STANDARD["copy", "alibi"]


def copy(folder: Path) -> Path:
    """The sources of posenc, in a folder of their own."""

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).is_file() and Path(name).suffix not in {".py", *COMPILED}]

    return Path(shutil.copytree(SOURCES, folder / "posenc", ignore=ignored))


def commented(text: str, mark: str) -> str:
    """With a comment and a blank line at the beginning and at the end."""
    return f"{mark} first\n\n{text}\n\n{mark} last\n"


# What changes it ------------------------------------------------------------------------------------------------------


def test_a_comment_in_every_file_changes_no_fingerprint(tmp_path: Path) -> None:
    """So a comment added to any file of the package leaves `posenc lab run standard` with nothing to do."""
    sources, edits = copy(tmp_path), 0
    for path in sources.rglob("*"):
        if mark := {".py": "#", ".cpp": "//", ".h": "//"}.get(path.suffix):
            path.write_text(commented(path.read_text("utf-8"), mark), "utf-8")
            edits += 1
    assert edits > 300
    assert {who: fingerprint(trial, sources) for who, trial in STANDARD.items()} == {
        who: fingerprint(trial) for who, trial in STANDARD.items()
    }


NOTHING_NEW: dict[str, tuple[str, Callable[[str], str]]] = {
    "a docstring of a module": ("positions.py", lambda text: text.replace('"""', '"""Other words. ', 1)),
    "a comment behind code": ("positions.py", lambda text: text.replace("\nimport torch\n", "\nimport torch  # here\n", 1)),
    "a message of an error": ("lab/tasks/task.py", lambda text: text.replace("expected ascending", "want ascending")),
    "a catalogue entry": ("encodings/alibi.py", lambda text: text.replace("BLOOM", "BLOOM 2")),
    "a page": ("encodings/alibi.md", lambda text: f"{text}\n"),
    "a title of a task": ("lab/tasks/copy.py", lambda text: text.replace('say("Copy"', 'say("Copying"')),
    "a value in a sentence": ("lab/tasks/copy.py", lambda text: text.replace('say("Copy")', 'say("Copy {n}", n=FEWEST)')),
    "words with a translation": (
        "lab/tasks/copy.py",
        lambda text: text.replace('say("Copy")', 'say("Copy", context="it")'),
    ),
    "the version": ("__init__.py", lambda text: text.replace('__version__ = "', '__version__ = "9')),
    "another encoding": ("encodings/cope.py", lambda text: text + "\nANOTHER = 1\n"),
    "another task": ("lab/tasks/recall.py", lambda text: text + "\nANOTHER = 1\n"),
    "the report": ("lab/report/page.py", lambda text: text + "\nANOTHER = 1\n"),
    "how trials are run": ("lab/run/sweep.py", lambda text: text + "\nANOTHER = 1\n"),
    "a new module": ("encodings/brand_new.py", lambda text: "X = 1\n"),
}
NEW: dict[str, tuple[str, Callable[[str], str]]] = {
    "its encoding": ("encodings/alibi.py", lambda text: text.replace("-8.0", "8.0").replace("8.0", "7.0")),
    "its task": ("lab/tasks/copy.py", lambda text: text.replace("return symbols", "return symbols + 1")),
    "what its task inherits": ("lab/tasks/drawn.py", lambda text: text.replace("FEWEST = 4096", "FEWEST = 4097")),
    "the loop": ("lab/trial/training.py", lambda text: text.replace("POINTS = 20", "POINTS = 21")),
    "a module under it": ("positions.py", lambda text: text + "\nANOTHER = 1\n"),
    "a renamed variable": ("lab/trial/optimiser.py", lambda text: text.replace("def schedule(step", "def schedule(now")),
}


@pytest.mark.parametrize("name", a_third(NOTHING_NEW))
def test_what_is_for_readers_or_for_other_trials_does_not_count(tmp_path: Path, name: str) -> None:
    sources, (file, change) = copy(tmp_path), NOTHING_NEW[name]
    before = (sources / file).read_text("utf-8") if (sources / file).exists() else ""
    after = change(before)
    assert after != before
    (sources / file).write_text(after, "utf-8")
    assert fingerprint(ALIBI, sources) == fingerprint(ALIBI)


@pytest.mark.parametrize("name", one_in(2, NEW))
def test_what_a_trial_runs_through_counts(tmp_path: Path, name: str) -> None:
    sources, (file, change) = copy(tmp_path), NEW[name]
    before = (sources / file).read_text("utf-8")
    after = change(before)
    assert after != before
    (sources / file).write_text(after, "utf-8")
    assert fingerprint(ALIBI, sources) != fingerprint(ALIBI)


def test_compiled_code_counts_and_its_comments_do_not(tmp_path: Path) -> None:
    sources = copy(tmp_path)
    path = next(path for path in sorted(sources.rglob("*.cpp")) if path.parent in folders_of(ALIBI, sources))
    text = path.read_text("utf-8")
    path.write_text(text + "\nint one_more() { return 1; }\n")
    assert fingerprint(ALIBI, sources) != fingerprint(ALIBI)


def folders_of(trial: Trial, sources: Path) -> set[Path]:
    return {file_of(name, sources).parent for name in modules_of(trial, sources)}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("int a; // one\nint b;", "int a;\n\n  int /* two\nlines */ b;", True),
        ('f("// no comment");', 'f("");', False),
        ('f("a  b");', 'f("a b");', False),
        ('f(R"(// raw  "text")");', 'f(R"(// raw "text")");', False),
        ("char c = '\"'; // x\nint d;", "char c = '\"';\nint d;", True),
        ("int a = 1;", "int a = 2;", False),
    ],
)
def test_comments_of_cpp_are_told_from_text(one: str, other: str, same: bool) -> None:
    assert (compiled(one) == compiled(other)) is same


def test_every_compiled_file_belongs_to_a_module_of_some_trial() -> None:
    """A folder of C++ without a module that trials run through would be overlooked."""
    belongs = set().union(*(folders_of(trial, SOURCES) for trial in STANDARD.values()))
    strays = {path.parent for path in SOURCES.rglob("*") if path.suffix in COMPILED} - belongs
    assert strays == set()


def test_names_for_readers_are_read_by_no_trial() -> None:
    """What is left out of a fingerprint must not decide a number, so no module that trials run through reads it."""
    names = set().union(*(modules_of(trial) for trial in STANDARD.values()))
    for name in names:
        tree = ast.parse(file_of(name).read_text("utf-8"))
        read_there = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        assert not read_there & FOR_READERS, name


# What a trial runs through --------------------------------------------------------------------------------------------

LOADED = """
import sys
from posenc.lab.experiment import Trial
from posenc.lab.trial.training import run_trial
run_trial(Trial.model_validate_json(sys.stdin.read()), None)
print(*sorted(name for name in sys.modules if name.split(".")[0] == "posenc"))
"""


@pytest.mark.parametrize(("encoding", "task"), first_only([("t5", "reverse"), ("rope", "copy"), ("cope", "copy")]))
def test_every_module_that_a_trial_loads_is_in_its_fingerprint(encoding: str, task: str) -> None:
    """The imports are read from the sources; this runs a trial and asks Python what was really loaded."""
    (trial,) = (one for one in experiment(encodings=(encoding,), seeds=1).trials() if one.task.name == task)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        command, input=trial.model_dump_json(), capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = {name for name in done.stdout.split() if is_module(name)}
    assert len(loaded) > 30
    assert loaded - modules_of(trial) <= {ROOT}


def test_a_fingerprint_takes_no_torch_and_no_time() -> None:
    script = """
import sys
from posenc.lab.records import fingerprint
fingerprint.fingerprint_of([fingerprint.TRAINING, "posenc.encodings.rope"])
print(*(name for name in ("torch", "numpy", "pydantic", "pyarrow") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


OWN = """
import posenc.encodings.t5
from posenc import DistanceBias
from posenc.encodings import alibi as slopes


class Mine(DistanceBias):
    pass
"""


def test_a_users_own_encoding_brings_what_its_file_imports() -> None:
    def of(source: str) -> frozenset[str]:
        return modules_of(TRIAL.model_copy(update={"encoding": "mine.py:Mine", "source": source}))

    assert of(OWN) - of("") == {"posenc.encodings.t5", "posenc.encodings.bases.bias_table", "posenc.encodings.alibi"}
    assert "posenc.encoding" in of(OWN)


def test_an_encoding_that_is_gone_is_named() -> None:
    gone: Any = TRIAL.model_copy(update={"encoding": "of_old"})
    with pytest.raises(ValueError, match=r"posenc\.encodings\.of_old: expected a module of posenc, found no file"):
        fingerprint(gone)


def test_it_is_the_same_for_every_version_of_python() -> None:
    named = [python for minor in range(11, 20) if (python := shutil.which(f"python3.{minor}"))]
    others = [python for python in named if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0]
    if not others:
        pytest.skip("no other Python on the path")
    script = "from posenc.lab.records.fingerprint import *; print(fingerprint_of([TRAINING]))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
    for python in others:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.strip() == fingerprint_of([TRAINING])
