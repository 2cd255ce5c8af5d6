"""The table of claims on the study's page, in both languages.

The row of a claim is that of the experiment made for its paper, where that tests it; otherwise of the study, of its tasks,
and for times, which these did not measure, of the study on code. Beside it stands what every other of these says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judging.causes import NOTES
from judging.deciding import limit_of
from judging.say import say
from judging.table import CLAIMS, MADE_FOR, Row, judged, p_values
from posenc.support.languages import LANGUAGES, Language, Words, clauses, joined

CLAIMS_FOLDER = Path(__file__).parents[1]
STUDY, TASKS, TIMES = "../study", "../study-tasks", "../study-code"
FOLDERS = (*dict.fromkeys(MADE_FOR.values()), STUDY, TASKS, TIMES)
"""The folders of records, beside this study's page."""
PAGES: Mapping[Language, str] = {"en": "README.md", "zh": "README.zh-CN.md"}
BEGIN, END = "<!-- table written by claims.py -->", "<!-- end of table -->"
HEAD = (
    *(say("source"), say("claim"), say("here", context="heading"), say("verdict"), say("why"), say("results")),
    say("other experiments"),
)
VERDICTS = {
    "agree": say("agree"),
    "disagree": say("disagree"),
    "undecided": say("undecided"),
    "not tested": say("not tested"),
}
THE_STUDY = "posenc lab run study"

Judgement = tuple[Row, str, dict[str, Row]]  # the row of a claim, the folder that it is of, and rows of others beside it


def judgements(findings: Mapping[str, Mapping[str, Any]]) -> list[Judgement]:
    """Every claim by the findings of each folder, corrected for all inequalities that the folder is asked for."""
    orders = [dict.fromkeys((MADE_FOR.get(claim.source, STUDY), STUDY, TASKS, TIMES)) for claim in CLAIMS]
    asked = dict[str, list[float]]()
    for claim, order in zip(CLAIMS, orders, strict=True):
        for folder in order:
            asked.setdefault(folder, []).extend(p_values(claim, findings[folder]))
    limits = {folder: limit_of(of_folder) for folder, of_folder in asked.items()}
    judgements = []
    for claim, order in zip(CLAIMS, orders, strict=True):
        rows = {folder: judged(claim, findings[folder], limits[folder]) for folder in order}
        folder = next((folder for folder, row in rows.items() if told(row)), STUDY)
        judgements.append((rows[folder], folder, {name: row for name, row in rows.items() if name != folder and told(row)}))
    return judgements


def told(row: Row) -> bool:
    return row.verdict != "not tested"


def pages(judgements: list[Judgement]) -> dict[Path, str]:
    """The study's pages with their tables written anew."""
    written = {}
    for language in LANGUAGES:
        path = CLAIMS_FOLDER / PAGES[language]
        before, _, rest = path.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        written[path] = f"{before}{BEGIN}\n{table(judgements, language)}\n{END}{after}"
    return written


def table(judgements: list[Judgement], language: Language) -> str:
    lines = [[words.in_language(language) for words in HEAD], ["---"] * len(HEAD)]
    return "\n".join(_line(cells) for cells in [*lines, *(_cells(one, language) for one in judgements)])


def _cells(judgement: Judgement, language: Language) -> list[str]:
    row, folder, beside = judgement
    words = (source(row), row.claim.words, row.ours, verdict(row), why(row))
    report = f"[{Path(folder).name}]({folder}/report/{PAGES[language].replace('README', 'report')})"
    return [*(one.in_language(language) for one in words), report, _others(beside).in_language(language)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def source(row: Row) -> Words:
    """The paper, or the numbers of the founding notes that state it."""
    if not row.claim.source.startswith(NOTES):
        return Words(row.claim.source)
    numbers = row.claim.source.removeprefix(NOTES).strip()
    return say("founding notes {numbers}", numbers=Words(numbers, numbers.replace(", ", "、")))


def verdict(row: Row) -> Words:
    """Agree, or "agree, not converged" where an encoding of the claim still improved at the end of training."""
    word = VERDICTS[row.verdict]
    return say("{verdict}, not converged", verdict=word) if row.unconverged else word


def why(row: Row) -> Words:
    """The reasons of a verdict, and what would decide it unless that is the study, whose result stands beside it."""
    parts = [row.why, row.cause]
    if row.needs.en:
        parts.append(say("a test would take {needs}", needs=row.needs))
    if row.decided_by not in ("", THE_STUDY):
        parts.append(say("would decide it: {command}", command=row.decided_by))
    return clauses(*(part for part in parts if part.en))


def _others(beside: Mapping[str, Row]) -> Words:
    """Folder, verdict and scores of the others that test the claim; a dash where none does."""
    return joined((_other(Path(folder).name, row) for folder, row in beside.items()), "; ", "；") if beside else Words("–")


def _other(folder: str, row: Row) -> Words:
    judged = say("{verdict}: {scores}", verdict=verdict(row), scores=row.ours) if row.ours.en else verdict(row)
    return say("{folder}: {judged}", folder=folder, judged=judged)
