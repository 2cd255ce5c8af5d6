"""Rows whose answer was found, apart from its order: the tokens said are all of the answer, in any order.

answer 4 7    said 4 7    right, and retrieved
              said 7 4    retrieved
              said 4 2    neither
"""

from __future__ import annotations

from posenc.lab.findings.arm_cells import TaskResults, mean

Shares = dict[str, float]  # by length


def retrieved(of: TaskResults) -> dict[str, dict[str, Shares]] | None:
    """The share of rows by encoding, change after training and length, mean over seeds; None where it was not recorded."""
    seeds = dict[tuple[str, str, int], list[float]]()
    for row in of.results.cells[of.name]:
        word = row["encoding"]
        if row["kind"] == "retrieved" and word in of.words and not row["oracle"] and row["mode"] == of.mode(word):
            seeds.setdefault((word, row["change"], row["length"]), []).append(row["mean"])
    found = dict[str, dict[str, Shares]]()
    for word, change, length in sorted(seeds, key=lambda cell: (of.words.index(cell[0]), *cell[1:])):
        share = mean(seeds[word, change, length])
        if share is not None:
            found.setdefault(word, {}).setdefault(change, {})[str(length)] = share
    return found or None
