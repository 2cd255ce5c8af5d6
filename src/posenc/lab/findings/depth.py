"""How retrieval depends on the depth of what is retrieved, in quarters: passkeys in filler text, and recalled pairs.

    depth 0  ! 4 7 x z y …        A 4 B 3 C 6 A      the key or the pair stands at the beginning, far from the question
    depth 1  … x z y ! 4 7 ?      A 4 B 3 C 6 C      at the end, beside it

Recall with several questions in a row is left out: only whole rows are recorded, and their pairs stand at several depths.

The depth of an item follows from its held-out row, which is the same in every trial.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.lab import tasks
from posenc.lab.findings.arm_cells import TaskResults
from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.recall import Recall
from posenc.lab.tasks.task import Task

QUARTERS = 4


def by_depth(of: TaskResults) -> dict[str, Any] | None:
    """Share of rows all right by encoding, length and quarter of the depth, over all seeds; None for other tasks.

    `farthest` is that of the first quarter, farthest from the question, at the longest length, by encoding and seed. A
    quarter without a row has None. Encodings without a score are left out.
    """
    task = tasks.read(of.plan["task"])
    if not has_depth(task):
        return None
    items = of.results.items(of.name, "exact")
    if not len(items["value"]):
        return None
    lengths = list(dict.fromkeys((of.length, of.lengths[-1])))
    arms: dict[str, dict[str, list[float | None]]] = {}
    farthest: dict[str, dict[str, float | None]] = {}
    last = quarters(task, lengths[-1])
    for word in of.words:
        of_arm = (items["encoding"] == word) & (items["mode"] == of.mode(word)) & (items["change"] == "")
        if of_arm.any():
            arms[word] = {str(n): _shares(items, of_arm & (items["length"] == n), quarters(task, n)) for n in lengths}
            there = of_arm & (items["length"] == lengths[-1])
            seeds = sorted(set(items["seed"][there].tolist()))
            farthest[word] = {str(seed): _shares(items, there & (items["seed"] == seed), last)[0] for seed in seeds}
    return {"lengths": lengths, "arms": arms, "farthest": farthest}


def has_depth(task: Task) -> bool:
    return isinstance(task, Passkey) or (isinstance(task, Recall) and task.queries == 1)


def quarters(task: Task, length: int) -> np.ndarray:
    """The quarter of the depth, 0 … 3, of every held-out row. Raises ValueError for a task without depth."""
    tokens = task.scored(length, None).tokens
    if isinstance(task, Passkey):
        before = task.depths(task.scored(length, None))
        depths = length + 1
    elif isinstance(task, Recall) and task.queries == 1:
        pairs = tokens[:, 1:-1:2]  # the first token of each, of loose values and keys too
        before, depths = (pairs == tokens[:, -1:]).int().argmax(dim=1), pairs.shape[1]
    else:
        raise ValueError(f"{task.name}: nothing in a row has one depth")
    of_row: np.ndarray = (before * QUARTERS // depths).numpy()
    return of_row


def _shares(items: Any, rows: np.ndarray, quarter: np.ndarray) -> list[float | None]:
    values, where = items["value"][rows], quarter[items["item"][rows].astype(int)]
    return [float(values[where == n].mean()) if (where == n).any() else None for n in range(QUARTERS)]
