"""The board: what encodings scored in folders of results, contributed ones and posenc's own, as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from posenc.lab.report import submission
from posenc.lab.report.cells import Arm, Findings, Task, cell
from posenc.lab.report.submission import Submission
from posenc.lab.say import say
from posenc.support.languages import Language

TITLE = say("Board of encodings")
ABOUT = say(
    "Every folder was read and its files compared with the hashes in its record; posenc lab verify FOLDER trains a sample "
    "again. Scores of different folders are compared only where experiment and text are the same. A score in brackets did "
    "not learn the trained length."
)
HEAD = (
    say("encoding"),
    say("task"),
    say("trained at"),
    say("tested at"),
    say("seeds", context="number"),
    say("laws"),
    say("by"),
)
BITS, EXACT = say("bits"), say("% exact")


class Entry(NamedTuple):
    """A folder, what was signed there, and what its trials say."""

    folder: Path
    signed: Submission | None
    findings: Findings


def read(folder: Path) -> Entry:
    """Raises ValueError for a folder without results, for a damaged trial, and as `submission.read` does."""
    from posenc.lab.findings import findings_cache
    from posenc.lab.findings.assemble import findings
    from posenc.lab.records.results import MANIFEST, Folder

    if not (folder / MANIFEST).is_file():
        raise ValueError(
            f"FOLDER: {folder} holds no experiment of posenc lab; expected one that posenc lab run or submit has made"
        )
    signed = submission.read(folder)
    if damage := Folder(folder).damage():
        raise ValueError(f"{folder}: {damage}")
    return Entry(folder, signed, findings_cache.recall(folder) or findings(folder))


def page(entries: Sequence[Entry], language: Language) -> str:
    """A table for each folder, in the order given; of a contributed folder, its own encoding first."""
    parts = [f"# {TITLE.in_language(language)}", ABOUT.in_language(language)]
    head = " | ".join(words.in_language(language) for words in HEAD)
    for entry in entries:
        about = entry.findings["about"][language]
        code = entry.findings["provenance"].get("revision", "")[:12] or entry.findings["posenc"]
        parts.append(f"## {entry.folder.name}\n\n{about} (`{code}`)")
        parts.append("\n".join([f"| {head} |", "|---|---|--:|--:|--:|--:|---|", *_rows(entry, language)]))
    return "\n\n".join(parts) + "\n"


def is_board(path: Path) -> bool:
    """Whether a file is a page that this module has written, to be replaced."""
    first = path.read_text("utf-8", errors="replace").partition("\n")[0] if path.is_file() else ""
    return first in {f"# {title}" for title in TITLE.both()}


def _rows(entry: Entry, language: Language) -> Iterator[str]:
    signed = entry.signed
    for task in entry.findings["tasks"]:
        arms = sorted(task["arms"], key=lambda arm: signed is None or arm["name"] != signed.encoding)
        for arm in arms:
            is_signed = signed is not None and arm["name"] == signed.encoding
            laws = f"{signed.laws.held}/{signed.laws.tried}" if signed and is_signed else ""
            who = f"{', '.join(signed.authors)}, {signed.date}" if signed and is_signed else "posenc"
            seeds = len(arm["cells"][str(task["length"])]["seeds"])
            name = f"**{arm['name']}**" if is_signed else arm["name"]
            ends = (_score(task, arm, length, language) for length in (task["length"], task["lengths"][-1]))
            yield f"| {' | '.join([name, task['title'][language], *ends, str(seeds), laws, who])} |"


def _score(task: Task, arm: Arm, length: int, language: Language) -> str:
    """At its length: "64: 2.30 bits"."""
    score = cell(task, arm, length)
    if score.number is None:
        return f"{length}: {score.words.in_language(language)}"
    number = f"({score.words.en})" if score.kind == "not learnt" else score.words.en
    return f"{length}: {number} {(BITS if task['measure'] == 'bits' else EXACT).in_language(language)}"
