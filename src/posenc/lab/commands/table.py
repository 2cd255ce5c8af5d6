"""The findings in the terminal: tables and sentences of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from posenc.lab.findings.wording import seeds_to_rank
from posenc.lab.report import screen
from posenc.lab.report.sections import sections
from posenc.lab.say import say
from posenc.support.languages import Language

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = ("stars", "heat", "after", "properties", "said")
MISSING = say("missing")


def show(findings: Mapping[str, Any], console: Console, language: Language) -> None:
    screen.show(sections(findings, SHOWN), console, language)
    console.print(Text(seeds_to_rank(findings).in_language(language), style="dim"))


def reasons(task: Mapping[str, Any]) -> Iterator[str]:
    """Reasons for missing numbers, other than that the task was not learnt."""
    for arm in task["arms"]:
        states = [arm["state"], *(cell["state"] for cell in arm["cells"].values())]
        for state in dict.fromkeys(states):
            if state and state.startswith(("cannot", "failed")):
                yield f"{arm['name']} {state}"
                break


def missing(findings: Mapping[str, Any], language: Language) -> Iterator[str]:
    """One line per missing trial."""
    for trial in findings["missing"]:
        yield f"{trial['task']} {trial['arm']} seed {trial['seed']}: {trial['why'] or MISSING.in_language(language)}"
