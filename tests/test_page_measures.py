"""What an encoding's page says about longer text agrees with what the study measured.

measured   behaviour in results/study/report/summary.csv: flat, fades or breaks at 16 times the trained length
said       words that the section "Where it breaks" has, and words that it must not have, in both languages
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import posenc

REPORT = Path(__file__).parent.parent / "results" / "study" / "report"
BREAKING = (("breaks", "quality falls", "nothing was learned there", "spreads out"), ("失效", "质量", "没有学到", "分散"))
STAYING = (
    ("it breaks", "quality falls", "cannot be recalled"),
    ("文本任务上，稍超训练长度就失效", "质量随即", "质量立即", "都找不回"),
)
MEASURED = {
    "alibi": "flat",
    "t5": "flat",
    "kerple": "flat",
    "fox": "flat",
    "transformer_xl": "flat",
    "cope": "flat",
    "shaw": "fades",
    "path": "breaks",
    "fire": "breaks",
    "xpos": "breaks",
    "pope": "breaks",
    "nope": "breaks",
    "sinusoidal": "breaks",
    "rope": "breaks",
    "floater": "breaks",
}
LOST = re.compile(r"text of 16 times the trained length costs (\d\.\d\d) bits|16 倍长的文本(?:只)?损失 (\d\.\d\d) 比特")


def column(file: str, **where: str) -> list[dict[str, str]]:
    with (REPORT / file).open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if where.items() <= row.items()]


def lost(name: str) -> float:
    """Bits at 2048 less bits at 128, mean over seeds."""
    ours = {"task": "language_model", "encoding": name, "setting": "trained", "mode": "same targets"}
    home, far = (column("cells.csv", length=length, **ours) for length in ("128", "2048"))
    return sum(float(row["value"]) for row in far) / len(far) - sum(float(row["value"]) for row in home) / len(home)


def said(name: str) -> tuple[str, str]:
    breaks = posenc.catalogue.BY_NAME[name].page.breaks
    return " ".join(breaks.en.split()), "".join(breaks.zh.split("\n"))


def test_the_table_is_the_studys() -> None:
    study = {row["encoding"]: row["behaviour"] for row in column("summary.csv") if row["behaviour"]}
    assert {name: word for name, word in study.items() if name in posenc.catalogue.BY_NAME} == MEASURED


@pytest.mark.parametrize("name", MEASURED)
def test_the_page_says_what_was_measured(name: str) -> None:
    for text, breaking, staying in zip(said(name), BREAKING, STAYING, strict=True):
        if MEASURED[name] == "breaks":
            assert any(words in text for words in breaking), text
            assert "it stays" not in text, text
            assert "平稳" not in text, text
        else:
            assert not any(words in text for words in staying), text


@pytest.mark.parametrize("name", ["alibi", "t5", "path", "fire", "xpos", "pope"])
def test_the_bits_on_the_page_are_those_of_the_study(name: str) -> None:
    for text in said(name):
        (found,) = LOST.findall(text)
        assert abs(float("".join(found)) - max(lost(name), 0)) <= 0.005 + 1e-9, text


@pytest.mark.parametrize(("name", "setting"), [("ntk", "ntk"), ("linear", "interpolation")])
def test_the_bits_of_a_changed_rope_are_those_of_the_study(name: str, setting: str) -> None:
    """`posenc choose` printed those of another run beside the study's: 4.28 bits and 5.93 in one answer."""
    for text in said(name):
        found = [float(bits) for bits in re.findall(r"(\d\.\d\d)(?: bits| 比特|[.。])", text)]
        where = {"task": "language_model", "encoding": "rope", "mode": "same targets", "length": "512"}
        measured = [[float(row["value"]) for row in column("cells.csv", setting=one, **where)] for one in (setting, "yarn")]
        assert found == [pytest.approx(sum(values) / len(values), abs=0.005) for values in measured], text
