"""examples/recipes: each runs, says what docs/recipes.md says, and does what its paper claims on the tiny model."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = ("drope", "rnope", "yarn")
TRAINED, FURTHER = "128", "512"


def tables(page):
    """The tables of a page, as lists of rows of numbers, one for each script; those before them are others'."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("python examples/recipes/yarn.py")[2]
    found = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    return [[[float(cell) for cell in row.split("|")[2:-1]] for row in table.splitlines()[2:]] for table in found]


def test_the_twins_hold_the_same_tables_and_pictures():
    assert len(tables("recipes.md")) == len(NAMES)
    assert tables("recipes.md") == tables("recipes.zh-CN.md")
    for name in NAMES:
        assert (ROOT / "docs" / "pictures" / f"recipe-{name}.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the three scripts write; they share one trained model."""
    folder = tmp_path_factory.mktemp("recipes")
    for name in NAMES:
        script = ROOT / "examples" / "recipes" / f"{name}.py"
        subprocess.run([sys.executable, script, folder], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert (folder / f"{name}.svg").stat().st_size > 10_000
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in NAMES}


@pytest.mark.acceptance
@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_the_one_of_the_page(results, name):
    """Python's standard library differs a little from version to version, and so does the text: within a quarter."""
    printed = dict(zip(NAMES, tables("recipes.md"), strict=True))[name]
    for row, own in zip(printed, results[name].values(), strict=True):
        assert list(own.values()) == pytest.approx(row, rel=0.25)


@pytest.mark.acceptance
def test_drope_reads_further_than_rope(results):
    rope, dropped, recalibrated = results["drope"].values()
    assert dropped[TRAINED] > 2 * rope[TRAINED]
    assert recalibrated["1024"] < 1.2 * recalibrated[TRAINED]
    assert recalibrated["1024"] < 0.75 * rope["1024"]


@pytest.mark.acceptance
def test_rnope_recovers_what_the_change_costs(results):
    rope, changed, tuned = results["rnope"].values()
    assert tuned[TRAINED] - rope[TRAINED] < 0.25 * (changed[TRAINED] - rope[TRAINED])
    assert tuned[FURTHER] < rope[FURTHER]


@pytest.mark.acceptance
def test_yarn_reads_four_times_the_length_and_fine_tuning_removes_its_loss(results):
    rope, scaled, tuned = results["yarn"].values()
    assert scaled[FURTHER] < 0.6 * rope[FURTHER]
    assert scaled[TRAINED] < 1.5 * rope[TRAINED]
    assert tuned[FURTHER] < 1.1 * rope[TRAINED]
