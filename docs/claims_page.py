"""The table of published claims that results/claims re-tests, from the reports beside the records."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from posenc.bilingual import Language
from posenc.lab.views.words import say

RESULTS = Path(__file__).parent.parent / "results"
STANDARD = "standard"
MADE_FOR = {  # source of a claim -> the experiment at its paper's setting
    "Press et al. 2022 (ALiBi)": "press",
    "Haviv et al. 2022": "haviv",
    "Kazemnejad et al. 2023": "kazemnejad",
    "Chen et al. 2023 (PI)": "peng",
    "Peng et al. 2023 (YaRN)": "peng",
    "Gelberg et al. 2025 (DroPE)": "drope",
    "Sun et al. 2022 (xPos)": "xpos",
    "Ruoss et al. 2023": "ruoss",
    "Li et al. 2023 (FIRE)": "fire",
    "Chi et al. 2022 (KERPLE)": "kerple",
    "Golovneva et al. 2024 (CoPE)": "cope",
    "McLeish et al. 2024 (Abacus)": "abacus",
    "notes 002": "order",
}
COLUMNS = ("source", "claim", "ours", "verdict", "why")
Row = dict[str, str]


def claims_table(language: Language) -> str:
    """Every claim: at the setting of its paper where that was run and tests it, otherwise as in the preset standard."""
    head = [say(name).in_language(language) for name in COLUMNS] + ["results" if language == "en" else "结果"]
    lines = [_line(head), _line(["---"] * len(head))]
    for row, folder in rows():
        told = [row["source"], row[f"claim_{language}"], row[f"ours_{language}"]]
        told += [say(row["verdict"]).in_language(language), row[f"why_{language}"]]
        report = "report.md" if language == "en" else "report.zh-CN.md"
        place = f"../{STANDARD}" if folder == STANDARD else folder
        lines.append(_line([*(one.replace("|", "\\|") for one in told), f"[{folder}]({place}/report/{report})"]))
    return "\n".join(lines)


def rows() -> Iterator[tuple[Row, str]]:
    """The row of every claim and the name of the experiment that it is of."""
    reports = {name: _published(RESULTS / "claims" / name) for name in dict.fromkeys(MADE_FOR.values())}
    for claim, row in _published(RESULTS / STANDARD).items():
        folder = MADE_FOR.get(row["source"], STANDARD)
        theirs = reports.get(folder, {}).get(claim)
        told = theirs and (theirs["verdict"] != "not tested" or theirs["ours_en"])
        yield (theirs, folder) if theirs and told else (row, STANDARD)


def _published(folder: Path) -> dict[str, Row]:
    path = folder / "report" / "published.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["claim_en"]: row for row in csv.DictReader(file)}


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
