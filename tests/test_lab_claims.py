"""The experiments of results/claims: each can decide the claims that it is made for."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path
from typing import Any

import pytest

from posenc.lab.experiment import Experiment, read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.published.table import CLAIMS, row
from posenc.lab.findings.titles import title
from posenc.lab.records.results import Folder
from posenc.lab.report.markdown import escaped, markdown
from posenc.lab.report.page import page as page_of
from posenc.lab.report.tables import tables

CLAIMS_FOLDER = Path(__file__).parent.parent / "results" / "claims"
MADE_FOR = {
    "press": ("ALiBi loses nothing", "6.9×", "4.9×", "2×: sinusoidal", "sinusoidal fails first", "rotary fails later"),
    "haviv": ("1×: no encoding", "a causal model needs", "a masked model fails"),
    "peng": ("RoPE unchanged breaks", "without training on: interpolation", "without training on, NTK",
             "interpolation stays flat", "at the factor, 2×: NTK 3.59 > YaRN",
             "at the factor, 2×: NTK 3.59 > interpolation", "at the factor, 2×: YaRN",
             "beyond the factor", "changed within"),
    "xpos": ("2×, without blockwise",),
    "fire": ("FIRE is better",),
    "kerple": ("KERPLE",),
    "kazemnejad": ("copy, exact match", "copy: ALiBi", "mean rank"),
    "ruoss": ("random positions generalise",),
    "cope": ("CoPE errs less", "CoPE counts"),
    "drope": ("RoPE retrieves nothing", "flat is not use", "retrieval: RoPE dropped", "retrieval: NTK"),
    "abacus": ("Abacus adds",),
    "jelassi": ("relative positions add",),
    "order": ("without positions, attention both ways",),
    "newer": [
        "DAPE is better",
        "CABLE has a lower",
        "stick-breaking attention",
        "GRAPE-AP",
        "RoPE without its slowest",
    ],
    "fope": ["FoPE finds"],
}  # fmt: skip


def all_learnt(experiment: Experiment) -> dict[str, Any]:
    """Findings in which every encoding learnt every task, with the same score everywhere."""
    cell = {"mean": 1.0, "seeds": {"0": 1.0}, "state": None}
    found: list[dict[str, Any]] = []
    for plan in experiment.tasks:
        task, lengths = plan.task, list(map(str, plan.task.lengths))
        arms = [
            {"name": word, "learnt": True, "converged": True, "state": None, "cells": dict.fromkeys(lengths, cell),
             "rise": dict.fromkeys(lengths, cell), "non_overlapping": dict.fromkeys(lengths, cell), "windows": {}}
            for word in experiment.of(plan)
        ]  # fmt: skip
        after = [
            {"change": change, "cells": dict.fromkeys(lengths, cell)}
            for change in ("", *plan.after, *(then.word for then in plan.then))
        ]
        found.append({
            "name": task.name, "title": task.title.as_dict(), "measure": task.measure, "length": task.length,
            "lengths": list(task.lengths), "chance": {length: task.chance(int(length)) for length in lengths},
            "arms": arms, "after": after if plan.after else [], "attention": [], "links": [], "similarity": None,
            "gate": {"best": arms[0]["name"]}, "settings": {}, "trained_tokens": 1,
        })  # fmt: skip
    return {"tasks": found, "cost": None, "seeds": [0]}


@pytest.mark.parametrize("name", MADE_FOR)
def test_an_experiment_decides_its_claims(name: str) -> None:
    experiment = read_experiment(str(CLAIMS_FOLDER / f"{name}.yaml"))
    found = all_learnt(experiment)
    for begins in MADE_FOR[name]:
        (claim,) = (claim for claim in CLAIMS if claim.words.en.startswith(begins))
        judged = row(claim, found)
        assert judged["ours"]["en"], (begins, judged["why"]["en"])
        assert judged["verdict"] != "not tested", (begins, judged["why"]["en"])
        assert "without" not in judged["why"]["en"].replace("without Partial RoPE: took no part", ""), judged["why"]["en"]


def test_the_files_are_those_that_the_claims_name() -> None:
    assert {path.stem for path in CLAIMS_FOLDER.glob("*.yaml")} == MADE_FOR.keys()
    named = {claim.cause.experiment.split()[-1] for claim in CLAIMS if claim.cause and "results/" in claim.cause.experiment}
    assert {Path(name).stem for name in named} <= MADE_FOR.keys()
    for page in ("README.md", "README.zh-CN.md"):
        text = (CLAIMS_FOLDER / page).read_text("utf-8")
        assert all(f"| [{name}]({name}.yaml) |" in text for name in MADE_FOR)


FINISHED = sorted(path.parent.name for path in CLAIMS_FOLDER.glob("*/experiment.json"))


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_experiment_is_that_of_its_file(name: str) -> None:
    folder = CLAIMS_FOLDER / name
    manifest = Folder(folder).experiment()
    experiment = read_experiment(str(folder.with_suffix(".yaml")))
    assert manifest is not None
    assert manifest["experiment"] == experiment.model_dump(mode="json")
    assert manifest["command"] == f"posenc lab run {name}.yaml"
    assert not manifest["failures"]
    assert set(manifest["keys"]) == set(Folder(folder).keys())
    assert len(manifest["keys"]) == len(experiment.trials())
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/"))


@pytest.mark.parametrize(
    "name", [name if name == "peng" else pytest.param(name, marks=pytest.mark.acceptance) for name in FINISHED]
)
def test_the_verdicts_are_those_of_the_records(name: str) -> None:
    """Where this fails: `posenc lab report results/claims/NAME`, and then `python docs/make.py`."""
    found, report = findings(CLAIMS_FOLDER / name), CLAIMS_FOLDER / name / "report"
    assert (report / "published.csv").read_text("utf-8") == tables(found)["published.csv"]
    for language, page in (("en", "report.md"), ("zh", "report.zh-CN.md")):
        assert (report / page).read_text("utf-8") == markdown(found, language)  # type: ignore[arg-type]


def test_the_table_has_the_studys_verdict_beside_each_claim() -> None:
    """Read from the page as it is shipped and from the study's own table; no row asks for the study to be run."""
    with (CLAIMS_FOLDER.parent / "study" / "report" / "published.csv").open(encoding="utf-8", newline="") as file:
        study = {row["claim_en"]: row for row in csv.DictReader(file)}
    page = (CLAIMS_FOLDER / "README.md").read_text("utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.partition("| source |")[2].splitlines()[2:] if "](" in line]
    assert len(lines) == len(study)
    for cells in lines:
        row = study[cells[1]]
        if cells[-2].startswith("[study]"):
            assert (cells[3], cells[-1]) == (row["verdict"], "–")
        elif row["verdict"] == "not tested" and not row["ours_en"]:
            assert cells[-1] == "–"
        else:
            assert cells[-1].startswith(row["verdict"])
    assert "posenc lab run study" not in page
    assert "; would decide it: posenc lab run gpu | [standard]" in page


@pytest.mark.parametrize("name", ["code", "tasks"])
def test_the_third_stage_has_encodings_of_the_first(name: str) -> None:
    """All eight on tasks; on code six, without the table that ends at the trained length and without KERPLE."""
    file = CLAIMS_FOLDER.parent / f"study-{name}" / "experiment.yaml"
    study, stage = read_experiment("study"), read_experiment(str(file))
    left_out = {"learned", "kerple"} if name == "code" else set[str]()
    assert stage.encodings == tuple(word for word in study.encodings[:8] if word not in left_out)
    for plan in stage.tasks:
        assert len({len(plan.tries(word)) for word in stage.of(plan)}) == 1
    if name == "code":
        (code,), (prose,) = stage.tasks, study.tasks
        assert (code.task, code.training, stage.size, stage.text) == (prose.task, prose.training, study.size, "library")


RESULTS = CLAIMS_FOLDER.parent
PAGES = {"en": "README.md", "zh": "README.zh-CN.md"}
MARK = {"en": "not converged", "zh": "未收敛"}
WITH_CLAIMS = [str(path.parents[1].relative_to(RESULTS)) for path in sorted(RESULTS.glob("**/report/published.csv"))]
READ_AGAIN = ("claims/newer", "study-code")  # the others take half a minute


def lines(folder: str, name: str) -> list[dict[str, str]]:
    with (RESULTS / folder / "report" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("folder", WITH_CLAIMS)
def test_a_verdict_on_models_that_still_improved_says_so_in_the_report(folder: str) -> None:
    """By the table of encodings, not by the row's own flag: an encoding whose score the row gives still improved in every
    task. Where all of them had converged, nothing is marked. The Markdown marks what the table of claims marks.
    """
    arms: dict[str, set[str]] = {}
    for arm in lines(folder, "summary.csv"):
        arms.setdefault(title(arm["encoding"]).en, set()).add(arm["converged"])
    still = {name for name, states in arms.items() if states == {"False"}}
    some = any("False" in states for states in arms.values())
    reports = {"en": "report.md", "zh": "report.zh-CN.md"}
    shown = {language: (RESULTS / folder / "report" / name).read_text("utf-8") for language, name in reports.items()}
    for claim in lines(folder, "published.csv"):
        marked = claim["unconverged"] == "True"
        if claim["verdict"] in ("agree", "disagree"):
            named = {name for name in still if re.search(rf"(^|[ (]){re.escape(name)} [0-9+-]", claim["ours_en"])}
            assert marked or not named, claim["claim_en"]
            assert some or not marked, claim["claim_en"]
        else:
            assert not marked
        for language in ("en", "zh"):
            begins = f"| {escaped(claim[f'claim_{language}'])} |"
            found = [line for line in shown[language].splitlines() if line.startswith(begins)]
            assert len(found) == 1, claim["claim_en"]
            assert (MARK[language] in found[0].split(" | ")[2]) == marked, claim["claim_en"]


@pytest.mark.parametrize(
    "folder", [name if name in READ_AGAIN else pytest.param(name, marks=pytest.mark.acceptance) for name in WITH_CLAIMS]
)
def test_a_verdict_on_models_that_still_improved_says_so_on_the_page(folder: str) -> None:
    found = findings(RESULTS / folder)
    opened = page_of(found).partition('id="published"')[2].partition("</section>")[0]
    shown = opened.split("<tr")[2:]
    assert len(shown) == len(found["published"])
    for line, claim in zip(shown, found["published"], strict=True):
        assert html.escape(claim["claim"]["en"]) in line
        verdict = line.partition('class="verdict')[2].partition("</td>")[0]
        for mark in MARK.values():
            assert (mark in verdict) == claim["unconverged"], claim["claim"]["en"]


def test_the_table_of_all_claims_marks_them_too() -> None:
    table = {language: (CLAIMS_FOLDER / name).read_text("utf-8") for language, name in PAGES.items()}
    decided = [one for one in lines("claims/newer", "published.csv") if one["unconverged"] == "True"]
    assert len(decided) > 1
    for one in decided:
        for language, mark in MARK.items():
            found = [
                line for line in table[language].splitlines() if one[f"claim_{language}"] in line and "[newer]" in line
            ]
            assert all(mark in line for line in found)
    assert any("stick" in one["claim_en"] for one in decided)
