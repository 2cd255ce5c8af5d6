"""A task whose best prediction is known: how far above its loss each encoding is.

excess   loss of the encoding - loss of the best prediction on the same symbols, at each length
"""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.findings.titles import title
from posenc.lab.report.cells import Findings, Task, far, learnt
from posenc.lab.report.document import Block, tabled
from posenc.lab.report.words import of, phrase, same
from posenc.support.languages import Words


def blocks(findings: Findings) -> Iterator[Block]:
    """A column for each length."""
    for task in findings["tasks"]:
        if task["floor"]:
            text = phrase("floor text", task=of(task["title"]))
            yield from tabled(text, [phrase("encoding"), *map(same, task["lengths"])], rows(task))


def rows(task: Task) -> list[list[Words]]:
    """The best prediction and counts in bits, then the excess of each encoding that learnt the task, the least first."""
    best = task["floor"]["lengths"]
    grams = {k: by for k, by in task["floor"]["grams"].items() if by != best}
    table = [[phrase("floor"), *(same(f"{bits:.3f}") for bits in best.values())]]
    table += [[phrase("grams", k=k), *(same(f"{bits:.3f}") for bits in by.values())] for k, by in grams.items()]
    for arm in sorted(learnt(task), key=lambda arm: arm["cells"][far(task)]["mean"] or float("inf")):
        means = {length: arm["cells"][length]["mean"] for length in best}
        excess = [same("–" if bits is None else f"{bits - best[length]:+z.3f}") for length, bits in means.items()]
        table.append([title(arm["name"]), *excess])
    return table
