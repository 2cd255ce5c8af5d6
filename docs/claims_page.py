"""The table of published claims that results/claims re-tests, from the reports beside the records."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from posenc.lab.report.cells import source, verdict
from posenc.lab.report.words import phrase, same
from posenc.support.languages import Language, Words, clauses

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
    "Jelassi et al. 2023": "jelassi",
    **dict.fromkeys(
        (
            "Zheng et al. 2024 (DAPE)",
            "Veisi et al. 2025 (CABLE)",
            "Tan et al. 2024 (stick-breaking)",
            "Zhang et al. 2025 (GRAPE)",
            "Barbero et al. 2024 (p-RoPE)",
        ),
        "newer",
    ),
    "Hua et al. 2024 (FoPE)": "fope",
    "notes 002": "order",
}
STUDY = "study"
COLUMNS = ("source", "claim", "ours", "verdict", "why")
MORE = {"en": ("results", "the study"), "zh": ("结果", "研究")}  # headings of the columns that only this table has
THE_STUDY = f"posenc lab run {STUDY}"
Row = dict[str, str]


def claims_table(language: Language) -> str:
    """Every claim: at the setting of its paper where that was run and tests it, otherwise as in the study, and the times as
    in the preset standard; and beside it what the study says, whose models are larger and trained for longer.
    """
    head = [*(phrase(name).in_language(language) for name in COLUMNS), *MORE[language]]
    lines = [_line(head), _line(["---"] * len(head))]
    for row, folder, study in rows():
        told = [source(row).in_language(language), row[f"claim_{language}"], row[f"ours_{language}"]]
        told += [_verdict(row, language), _why(row, language)]
        report = "report.md" if language == "en" else "report.zh-CN.md"
        place = f"../{folder}" if folder in (STANDARD, STUDY) else folder
        told += [f"[{folder}]({place}/report/{report})", _beside(study, folder, language)]
        lines.append(_line([one.replace("|", "\\|") for one in told]))
    return "\n".join(lines)


def rows() -> Iterator[tuple[Row, str, Row | None]]:
    """The row of every claim, the name of the experiment that it is of, and the study's row."""
    reports = {name: _published(RESULTS / "claims" / name) for name in dict.fromkeys(MADE_FOR.values())}
    reports |= {name: _published(RESULTS / name) for name in (STUDY, STANDARD)}
    for claim, row in reports[STANDARD].items():
        order = [MADE_FOR.get(row["source"], STUDY), STUDY, STANDARD]
        folder = next((one for one in order if _told(reports[one].get(claim))), STUDY)
        yield reports[folder][claim], folder, reports[STUDY].get(claim)


def _told(row: Row | None) -> bool:
    return row is not None and bool(row["verdict"] != "not tested" or row["ours_en"])


def _verdict(row: Row, language: Language) -> str:
    return verdict({**row, "unconverged": row["unconverged"] == "True"}).in_language(language)


def _why(row: Row, language: Language) -> str:
    """The reasons of a verdict, and what would decide it unless that is the study: the column beside it has its result."""
    why = Words(row["why_en"], row["why_zh"])
    if row["decided_by"] not in ("", THE_STUDY):
        why = clauses(why, phrase("would decide", command=same(row["decided_by"])))
    return why.in_language(language)


def _beside(row: Row | None, folder: str, language: Language) -> str:
    """Verdict and scores of the study; a dash where it tests nothing of the claim, or the row itself is of the study."""
    if row is None or folder == STUDY or not _told(row):
        return "–"
    verdict, colon = _verdict(row, language), ": " if language == "en" else "："
    return verdict + (f"{colon}{row[f'ours_{language}']}" if row[f"ours_{language}"] else "")


def _published(folder: Path) -> dict[str, Row]:
    path = folder / "report" / "published.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["claim_en"]: row for row in csv.DictReader(file)}


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
