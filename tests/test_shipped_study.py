"""The study as it is shipped, finished or not: its report is what its records say, and nothing unfinished is ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posenc.catalogue.choose.choice import table
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.records.results import Folder
from posenc.lab.report.markdown import markdown
from posenc.lab.report.tables import tables
from told_apart import verdicts

RESULTS = Path(__file__).parent.parent / "results"
STUDY, TASKS, CODE = RESULTS / "study", RESULTS / "study-tasks", RESULTS / "study-code"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return findings(STUDY)


@pytest.fixture(scope="module")
def of_tasks() -> dict[str, Any]:
    return findings(TASKS)


@pytest.fixture(scope="module")
def of_code() -> dict[str, Any]:
    return findings(CODE)


def test_the_report_is_what_the_records_say(
    found: dict[str, Any], of_tasks: dict[str, Any], of_code: dict[str, Any]
) -> None:
    """Where this fails: `posenc lab report results/study`, or results/study-tasks, or results/study-code."""
    for folder, one in ((STUDY, found), (TASKS, of_tasks), (CODE, of_code)):
        for language, page in (("en", "report.md"), ("zh", "report.zh-CN.md")):
            assert (folder / "report" / page).read_text("utf-8") == markdown(one, language)  # type: ignore[arg-type]
        for name, text in tables(one).items():
            assert (folder / "report" / name).read_bytes().decode().replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_every_trial_of_the_tasks_is_there(of_tasks: dict[str, Any]) -> None:
    manifest, experiment = Folder(TASKS).experiment(), read_experiment(str(TASKS / "experiment.yaml"))
    assert manifest is not None
    assert manifest["experiment"] == experiment.model_dump(mode="json")
    assert of_tasks["trials"] == {"expected": 245, "found": 245, "failed": 0}
    content = b"".join(path.read_bytes() for path in TASKS.rglob("*") if path.is_file())
    assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/"))


@pytest.mark.parametrize(
    "page",
    ["docs/results.md", "docs/results.zh-CN.md", "results/study-tasks/README.md", "results/study-tasks/README.zh-CN.md"],
)
def test_the_readmes_tell_the_numbers_of_the_tasks(of_tasks: dict[str, Any], page: str) -> None:
    """How many passkeys are found in 16 times the filler, by RoPE with YaRN too, and what KERPLE copies at twice 8."""
    text = (RESULTS.parent / page).read_text("utf-8")
    arms = {task["name"]: {arm["name"]: arm for arm in task["arms"]} for task in of_tasks["tasks"]}
    names = ("t5", "kerple", "nope", "alibi", "sinusoidal", "rope")
    told = {f"{100 * arms['passkey'][name]['cells']['512']['mean']:.0f}" for name in names}
    assert [number for number in told if number not in text] == []
    yarn = next(
        one for task in of_tasks["tasks"] if task["name"] == "passkey" for one in task["after"] if one["change"] == "yarn"
    )
    assert yarn["cells"]["512"]["mean"] == 1
    assert f"{100 * arms['copy']['kerple']['cells']['16']['mean']:.0f} ± 22" in text
    assert {arm["cells"]["32"]["mean"] for arm in arms["copy"].values() if arm["cells"]["32"]["mean"] is not None} == {0}


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_of_code_tells_these_numbers(of_code: dict[str, Any], page: str) -> None:
    """How many models, their bits at the trained length, what 16 times costs, and the trained RoPE changed at 4 times."""
    found, text = of_code, (CODE / page).read_text("utf-8")
    (task,) = found["tasks"]
    arms = {arm["name"]: arm for arm in task["arms"] if arm["cells"]["128"]["mean"] is not None}
    at_home = [arm["cells"]["128"]["mean"] for arm in arms.values()]
    told = [str(found["trials"]["found"]), f"{min(at_home):.2f}", f"{max(at_home):.2f}"]
    told += [f"{arm['rise']['2048']['mean']:.2f}" for arm in arms.values()]
    told += [f"{change['cells']['512']['mean']:.2f}" for change in task["after"]]
    assert [number for number in told if number not in text] == []
    assert all(arm["converged"] is False and arm["rank"] is None for arm in arms.values())


def test_what_is_not_finished_has_no_rank(found: dict[str, Any]) -> None:
    (task,) = found["tasks"]
    assert found["trials"]["failed"] == 0
    assert all(arm["rank"] is None for arm in task["arms"] if not arm["learnt"] or arm["converged"] is False)
    assert any(arm["rank"] is not None for arm in task["arms"])


@pytest.mark.parametrize("page", ["docs/results.md", "docs/results.zh-CN.md"])
def test_the_page_tells_these_numbers(found: dict[str, Any], page: str) -> None:
    """How many models, what 16 times the trained length costs, and what changes of the trained RoPE have at 4 times."""
    text = (RESULTS.parent / page).read_text("utf-8")
    (paragraph,) = (one for one in text.split("\n\n") if "](../results/study/" in one and "Self-Extend" in one)
    (task,) = found["tasks"]
    arms = {arm["name"]: arm for arm in task["arms"]}
    flat, fading = ("alibi", "kerple", "fox", "transformer_xl", "t5", "cope"), ("shaw", "path", "fire", "xpos", "pope")
    names = (*flat, *fading, "rope+randomized", "sinusoidal", "rope")
    told = [f"{max(arms[name]['rise']['2048']['mean'], 0):.2f}" for name in names]
    told += [f"{change['cells']['512']['mean']:.2f}" for change in task["after"]]
    assert found["trials"]["expected"] == found["trials"]["found"]
    told.append(str(found["trials"]["found"]))
    at_home = {name: arm["cells"]["128"]["mean"] for name, arm in arms.items() if arm["cells"]["128"]["mean"] is not None}
    told.append(f"{at_home.pop('rope+dropped'):.2f}")
    told += [f"{min(at_home.values()):.2f}", f"{max(at_home.values()):.2f}"]
    assert [number for number in told if number not in paragraph] == []


@pytest.mark.parametrize(("page", "row"), [("README.md", "| match model |"), ("README.zh-CN.md", "| 匹配模型 |")])
def test_the_readme_of_the_study_tells_what_the_text_holds(found: dict[str, Any], page: str, row: str) -> None:
    (line,) = (line for line in (STUDY / page).read_text("utf-8").splitlines() if line.startswith(row))
    bits = list(found["context"].values())
    assert line.removeprefix(row).strip("| ").split(" | ") == [f"{number:.3f}" for number in (*bits, bits[0] - bits[-1])]


@pytest.mark.parametrize("name", table()["measures"])
def test_choose_carries_who_is_ranked_and_told_apart(found: dict[str, Any], of_tasks: dict[str, Any], name: str) -> None:
    """Marks and pairs of its tables of figures are those of the findings."""
    measure = table()["measures"][name]
    known = {"results/study": found, "results/study-tasks": of_tasks}
    unranked, apart = verdicts(name, measure, known.get(measure["source"]) or findings(RESULTS.parent / measure["source"]))
    assert measure.get("unranked", {}) == unranked
    assert measure["apart"] == apart
