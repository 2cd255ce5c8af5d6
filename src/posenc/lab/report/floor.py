"""A task whose best prediction is known: how far above its loss each encoding is, and how much far context it uses.

excess   loss of the encoding - loss of the best prediction on the same symbols, at each length
used     the loss that the encoding saves from the trained to the longest length / what the best prediction saves
"""

from __future__ import annotations

from collections.abc import Iterator

from posenc.lab.findings.titles import title
from posenc.lab.report.block import Block
from posenc.lab.report.cells import Findings, Task, far, home, learnt
from posenc.lab.report.words import of, phrase, same
from posenc.support.languages import Words


def blocks(findings: Findings) -> Iterator[Block]:
    """A column for each length, and two for what happens beyond the trained one."""
    for task in findings["tasks"]:
        if task["floor"]:
            text = phrase("floor text", task=of(task["title"]), home=task["length"])
            head = [phrase("encoding"), *map(same, task["lengths"]), phrase("stays"), phrase("used")]
            yield Block(text, head, rows(task))


def rows(task: Task) -> list[list[Words]]:
    """The best prediction and counts in bits, then the excess of each encoding that learnt the task, the least first."""
    best = task["floor"]["lengths"]
    grams = {k: by for k, by in task["floor"]["grams"].items() if by != best}
    nothing = [same("–")] * 2
    table = [[phrase("floor"), *(same(f"{bits:.3f}") for bits in best.values()), *nothing]]
    table += [[phrase("grams", k=k), *(same(f"{bits:.3f}") for bits in by.values()), *nothing] for k, by in grams.items()]
    for arm in sorted(learnt(task), key=lambda arm: arm["cells"][far(task)]["mean"] or float("inf")):
        means = {length: arm["cells"][length]["mean"] for length in best}
        excess = [same("–" if bits is None else f"+{bits - best[length]:.3f}") for length, bits in means.items()]
        word = phrase(f"behaviour {arm['behaviour']}") if arm["behaviour"] else same("–")
        used = used_of(task, means)
        table.append([title(arm["name"]), *excess, word, same("–" if used is None else f"{used:.0%}")])
    return table


def used_of(task: Task, means: dict[str, float | None]) -> float | None:
    """The share of the best prediction's gain from the trained to the longest length; negative where the loss rises."""
    best, near, long = task["floor"]["lengths"], means[home(task)], means[far(task)]
    gain = best[home(task)] - best[far(task)]
    return None if near is None or long is None or gain <= 0 else (near - long) / gain
