"""Language models on text: what a predictor that finds far repetitions gains from longer windows, beside what encodings do.

gain   bits a byte at the trained length - bits a byte at the longest, on the same bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Findings, Task, far, home, learnt
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import phrase, same
from posenc.support.languages import Words

TEXT = "language_model"


def blocks(findings: Findings) -> Iterator[Block]:
    """The language model, where the match model was measured."""
    for task in findings["tasks"]:
        if task["name"] == TEXT and findings["context"]:
            gains = phrase("gains", home=home(task), far=far(task))
            head = [phrase("encoding"), *map(same, task["lengths"]), gains]
            yield from tabled(phrase("ceiling text", home=task["length"]), head, _rows(findings, task))


def _rows(findings: Findings, task: Task) -> list[list[Words]]:
    """The match model, then the encodings that learnt the task, those that gain most first."""
    arms = [(title(arm["name"]), {at: cell["mean"] for at, cell in arm["cells"].items()}) for arm in learnt(task)]
    arms.sort(key=lambda arm: -(_gain(task, arm[1]) or float("-inf")))
    return [_row(task, name, bits) for name, bits in [(phrase("match model"), findings["context"]), *arms]]


def _row(task: Task, name: Words, bits: Mapping[str, float | None]) -> list[Words]:
    each, gain = (bits[str(length)] for length in task["lengths"]), _gain(task, bits)
    return [
        name,
        *(same("–" if value is None else f"{value:.3f}") for value in each),
        same("–" if gain is None else f"{gain:+.3f}"),
    ]


def _gain(task: Task, bits: Mapping[str, float | None]) -> float | None:
    near, long = bits[home(task)], bits[far(task)]
    return None if near is None or long is None else near - long
