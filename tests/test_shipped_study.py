"""The study as it is shipped, finished or not: its report is what its records say, and nothing unfinished is ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posenc.lab.findings.assemble import findings
from posenc.lab.views.markdown import markdown
from posenc.lab.views.tables import tables

STUDY = Path(__file__).parent.parent / "results" / "study"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return findings(STUDY)


def test_the_report_is_what_the_records_say(found: dict[str, Any]) -> None:
    """Where this fails: `posenc lab report results/study`."""
    for language, page in (("en", "report.md"), ("zh", "report.zh-CN.md")):
        assert (STUDY / "report" / page).read_text("utf-8") == markdown(found, language)  # type: ignore[arg-type]
    for name, text in tables(found).items():
        assert (STUDY / "report" / name).read_bytes().decode().replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_what_is_not_finished_has_no_rank(found: dict[str, Any]) -> None:
    (task,) = found["tasks"]
    assert found["trials"]["failed"] == 0
    assert all(arm["rank"] is None for arm in task["arms"] if not arm["learnt"] or arm["converged"] is False)
    assert any(arm["rank"] is not None for arm in task["arms"])


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_tells_these_numbers(found: dict[str, Any], page: str) -> None:
    """How many models, what 16 times the trained length costs, and what changes of the trained RoPE have at 4 times."""
    text = (STUDY.parent.parent / page).read_text("utf-8")
    (paragraph,) = (one for one in text.split("\n\n") if "](results/study/" in one and "Self-Extend" in one)
    (task,) = found["tasks"]
    arms = {arm["name"]: arm for arm in task["arms"]}
    names = ("alibi", "kerple", "t5", "rope+randomized", "sinusoidal", "rope")
    told = [f"{max(arms[name]['rise']['2048']['mean'], 0):.2f}" for name in names]
    told += [f"{change['cells']['512']['mean']:.2f}" for change in task["after"]]
    told.append(str(found["trials"]["found"]))
    assert [number for number in told if number not in paragraph] == []
