"""The results that are shipped: complete, their report is what they say today, and the READMEs tell no other numbers."""

import csv
import io
import re
from pathlib import Path

import pytest

from posenc.lab.experiment import read
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.titles import title
from posenc.lab.records.results import Folder
from posenc.lab.views import charts
from posenc.lab.views.markdown import markdown
from posenc.lab.views.tables import tables

ROOT = Path(__file__).parent.parent
STANDARD = ROOT / "results" / "standard"


@pytest.fixture(scope="module")
def found():
    return findings(STANDARD)


def test_every_trial_of_the_preset_is_there(found):
    manifest = Folder(STANDARD).experiment()
    assert manifest["experiment"] == read("standard").model_dump(mode="json")
    expected = len(read("standard").trials())
    assert found["trials"] == {"expected": expected, "found": expected, "failed": 0}
    assert found["missing"] == []
    assert {arm["name"] for task in found["tasks"] for arm in task["arms"]} == set(read("standard").encodings)


def test_the_report_is_what_the_results_say(found):
    written = {path.name: path.read_text("utf-8") for path in (STANDARD / "report").glob("report*.md")}
    assert written == {"report.md": markdown(found, "en"), "report.zh-CN.md": markdown(found, "zh")}
    for name, text in tables(found).items():
        assert (STANDARD / "report" / name).read_bytes().decode().replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_loss_by_position_is_drawn_where_places_are_lengths(found):
    assert [task["name"] for task in found["tasks"] if charts.places(found, task)] == ["language_model"]


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_tells_these_numbers(found, page):
    """Every "NAME +1.23" beside the shipped picture is the rise of that encoding at the longest length."""
    text = (ROOT / page).read_text("utf-8")
    (task,) = (task for task in found["tasks"] if task["name"] == "language_model")
    longest = str(task["lengths"][-1])
    told = re.findall(r"([A-Z][\w-]+) ([+-]\d\.\d\d)", text)
    assert len(told) >= 4
    rises = {
        title(arm["name"]).en: f"{arm['rise'][longest]['mean']:+.2f}" for arm in task["arms"] if longest in arm["rise"]
    }
    assert dict(told) == {name: rises[name] for name, _ in told}


def test_no_path_of_a_machine_is_shipped():
    for path in STANDARD.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"/tmp/" not in content
            assert b"/home/" not in content
            assert b"/root/" not in content
    rows = list(csv.DictReader(io.StringIO((STANDARD / "report" / "cells.csv").read_text("utf-8"))))
    assert len(rows) > 1000
