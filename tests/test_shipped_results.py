"""The results that are shipped: complete, their report is what they say today, and the READMEs tell no other numbers."""

import csv
import io
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.records import verified
from posenc.lab.records.results import Folder
from posenc.lab.report import charts
from posenc.lab.report.markdown import markdown
from posenc.lab.report.tables import tables
from posenc.lab.run.verify import kept_trials, touched

ROOT = Path(__file__).parent.parent
STANDARD = ROOT / "results" / "standard"


@pytest.fixture(scope="module")
def found():
    return findings(STANDARD)


def test_every_trial_of_the_preset_is_there(found):
    manifest = Folder(STANDARD).experiment()
    assert manifest["experiment"] == read_experiment("standard").model_dump(mode="json")
    expected = len(read_experiment("standard").trials())
    assert found["trials"] == {"expected": expected, "found": expected, "failed": 0}
    assert found["missing"] == []
    assert {arm["name"] for task in found["tasks"] for arm in task["arms"]} == set(read_experiment("standard").encodings)


def test_the_report_is_what_the_results_say(found):
    written = {path.name: path.read_text("utf-8") for path in (STANDARD / "report").glob("report*.md")}
    assert written == {"report.md": markdown(found, "en"), "report.zh-CN.md": markdown(found, "zh")}
    for name, text in tables(found).items():
        assert (STANDARD / "report" / name).read_bytes().decode().replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_loss_by_position_is_drawn_where_places_are_lengths(found):
    assert [task["name"] for task in found["tasks"] if charts.by_position(found, task)] == ["language_model"]


def test_no_path_of_a_machine_is_shipped():
    for path in STANDARD.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"/tmp/" not in content
            assert b"/home/" not in content
            assert b"/root/" not in content
    rows = list(csv.DictReader(io.StringIO((STANDARD / "report" / "cells.csv").read_text("utf-8"))))
    assert len(rows) > 1000


@pytest.mark.acceptance
def test_a_comment_in_every_file_leaves_the_preset_with_nothing_to_do(tmp_path):
    """`posenc lab run standard`, in a copy of the package where every file has one comment more."""
    suffixes = {".py": "#", ".yaml": "#", **dict.fromkeys((".cpp", ".h"), "//")}
    package = Path(shutil.copytree(ROOT / "src" / "posenc", tmp_path / "src" / "posenc"))
    for path in package.rglob("*"):
        if path.suffix in suffixes:
            path.write_text(f"{path.read_text('utf-8')}\n\n{suffixes[path.suffix]} one comment more\n", "utf-8")
    kept = Path(shutil.copytree(STANDARD, tmp_path / "standard"))
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "posenc", "lab", "run", "standard", "--out", str(kept)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    trained_on = Folder(STANDARD).experiment()["text"]["source"]
    if trained_on == f"Python {platform.python_version()} standard library":
        assert done.returncode == 0, done.stderr
        assert "posenc lab: 0 trials run, 252 found, 0 failed" in done.stderr
    else:  # another text is refused, and nothing is touched either
        assert done.returncode == 1
        assert f"was trained on {trained_on!r}" in done.stderr
    assert sorted(path for path in before if path.suffix == ".parquet") == sorted(kept.rglob("*.parquet"))
    assert all(path.read_bytes() == content for path, content in before.items() if path.suffix == ".parquet")


def test_every_key_was_carried_over_or_run_again_in_the_open():
    """The trials with random positions were run again, because they are scored at random positions now."""
    rows = list(csv.DictReader((STANDARD / "rekeyed.csv").read_text("utf-8").splitlines()))
    trials, text = read_experiment("standard").trials(), Folder(STANDARD).experiment()["text"]["sha256"]
    carried = {trial.key(text) for trial in trials if not trial.arm.randomized}
    again = {trial.key(text) for trial in trials if trial.arm.randomized}
    assert len(again) == 21
    assert carried | again == set(Folder(STANDARD).keys())
    assert carried <= {row["new_key"] for row in rows}
    assert len({row["old_key"] for row in rows}) == len(rows) == 252
    assert len(list((STANDARD / "trials").iterdir())) == 252
    assert Folder(STANDARD).others() == 0


def test_the_references_cover_every_task_and_every_encoding_that_was_carried_over():
    kept = [record for records in verified.references(STANDARD).values() for record in records]
    trials = read_experiment("standard").trials()
    carried = [trial for trial in trials if not trial.arm.randomized]
    encodings = {record.about["trial"]["encoding"] for record in kept}
    assert {record.about["key"] for record in kept} <= set(Folder(STANDARD).keys())
    assert {record.about["trial"]["task"]["name"] for record in kept} == {trial.task.name for trial in carried}
    assert {trial.encoding for trial in carried} <= encodings <= {trial.encoding for trial in trials}


@pytest.mark.acceptance
def test_the_results_are_those_of_this_code():
    """Where this fails: `posenc lab verify results/standard`, and commit the line that it adds to verified.jsonl."""
    kept = kept_trials(Folder(STANDARD))
    assert [str(one.trial) for one in touched(Folder(STANDARD), kept)] == []
