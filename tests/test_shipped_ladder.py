"""The ladder that is shipped: complete, its report is what its records say today, and the READMEs tell no other numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

import in_process
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.ladder import Scale, ladder
from posenc.lab.records.results import Folder
from posenc.lab.report.ladder import ladder_report
from posenc.lab.report.ladder_pictures import ladder_pictures

ROOT = Path(__file__).parent.parent
LADDER = ROOT / "results" / "ladder"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return ladder([Scale(name, findings(LADDER / name)) for name in ("x1", "x4", "x16", "wide-x4")])


def test_every_trial_of_the_preset_is_there(found: dict[str, Any]) -> None:
    preset = read_experiment("ladder")
    assert [rung["trials"] for rung in found["rungs"]] == [{"expected": 24, "found": 24, "failed": 0}] * 4
    for rung in preset.rungs:
        manifest = Folder(LADDER / rung.name).experiment()
        assert manifest is not None
        assert manifest["experiment"] == preset.at(rung).model_dump(mode="json")


def test_the_order_is_not_called_a_ranking(found: dict[str, Any]) -> None:
    """While every training still improved; a rung that has converged takes the sentence away."""
    said = "not a ranking"
    assert ladder_report(found, "en").count(said) == (LADDER / "report" / "ladder.md").read_text("utf-8").count(said) > 0
    finished = json.loads(json.dumps(found))
    finished["arms"]["alibi"][-1]["converged"] = True
    assert said not in ladder_report(finished, "en")


@pytest.mark.acceptance
def test_one_model_is_trained_again_by_the_printed_command() -> None:
    """The bits of a machine may differ; the stated tolerance is what `posenc lab repeat` checks."""
    done = in_process.posenc("lab", "repeat", "language_model", "alibi", "seed", "0", "--in", LADDER / "x1")
    assert done.returncode == 0, done.stderr
    assert all(f" {length} " in done.stdout for length in (128, 192, 256, 512, 1024))


def test_the_report_is_what_the_records_say(found: dict[str, Any]) -> None:
    """Where this fails: `posenc lab report results/ladder`, and copy its ladder.json to src/posenc/lab/findings."""
    report = LADDER / "report"
    assert json.loads((report / "ladder.json").read_text("utf-8")) == json.loads(json.dumps(found))
    assert (report / "ladder.md").read_text("utf-8") == ladder_report(found, "en")
    assert (report / "ladder.zh-CN.md").read_text("utf-8") == ladder_report(found, "zh")
    drawn = {path.name: path.read_text("utf-8") for path in report.glob("*.svg")}
    assert drawn == ladder_pictures(found)


@pytest.mark.parametrize("page", ["docs/results.md", "docs/results.zh-CN.md"])
def test_the_page_tells_these_numbers(found: dict[str, Any], page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    told = text[text.index("results/ladder/report/scores") :][:1500]
    for kept in found["kept"]:
        counts = (f"{len(kept['pairs'])} of {kept['of']} pairs", f"{kept['of']} 对编码中有 {len(kept['pairs'])} 对")
        assert any(words in told for words in counts) or f"{kept['of']} 对中有 {len(kept['pairs'])} 对" in told
    far = [{name: arms[n]["means"]["1024"] for name, arms in found["arms"].items()} for n in range(4)]
    scores = [far[0]["rope"], far[2]["rope"], far[0]["sinusoidal"], far[2]["sinusoidal"], *(rung["t5"] for rung in far)]
    assert [f"{score:.2f}" for score in scores if f"{score:.2f}" not in told] == []


def test_no_path_of_a_machine_is_shipped() -> None:
    for path in LADDER.rglob("*"):
        if path.is_file():
            assert not any(part in path.read_bytes() for part in (b"/tmp/", b"/home/", b"/root/", b"/work/")), path
