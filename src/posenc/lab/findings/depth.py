"""How retrieval depends on the depth of what is retrieved: the passkey task, in quarters of the filler text.

    depth 0  ! 4 7 x z y …        the key stands at the beginning, far from the question
    depth 1  … x z y ! 4 7 ?      at the end, beside it

The depth of an item follows from its held-out row, which is the same in every trial.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc.lab.findings.arm_cells import TaskResults
from posenc.lab.tasks.passkey import Passkey

QUARTERS = 4


def by_depth(of: TaskResults) -> dict[str, Any] | None:
    """Share of rows all right by encoding, length and quarter of the depth, over all seeds; None for other tasks.

    A quarter without a row has None. Encodings without a score are left out.
    """
    if of.name != "passkey":
        return None
    found = of.results.items(of.name, "exact")
    if not len(found["value"]):
        return None
    lengths = list(dict.fromkeys((of.length, of.lengths[-1])))
    task = Passkey(**of.plan["task"])
    arms: dict[str, dict[str, list[float | None]]] = {}
    for word in of.words:
        mine = (found["encoding"] == word) & (found["mode"] == of.mode(word))
        if mine.any():
            arms[word] = {str(n): _shares(found, mine & (found["length"] == n), quarters(task, n)) for n in lengths}
    return {"lengths": lengths, "arms": arms}


def quarters(task: Passkey, length: int) -> np.ndarray:
    """The quarter of the depth, 0 … 3, of every held-out row."""
    tokens = task.scored(length).tokens
    announced = (tokens == 10 + task.filler + 1).int().argmax(dim=1) - 1  # fillers before the key
    of_row: np.ndarray = (announced * QUARTERS // (length + 1)).numpy()
    return of_row


def _shares(found: Any, mine: np.ndarray, quarter: np.ndarray) -> list[float | None]:
    values, where = found["value"][mine], quarter[found["item"][mine].astype(int)]
    return [float(values[where == n].mean()) if (where == n).any() else None for n in range(QUARTERS)]
