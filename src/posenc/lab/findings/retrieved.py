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
    items = of.results.items(of.name, "retrieved")
    if not len(items["value"]):
        return None
    found = dict[str, dict[str, Shares]]()
    for word in of.words:
        mine = (items["encoding"] == word) & (items["mode"] == of.mode(word))
        for change in sorted(set(items["change"][mine].tolist())):
            changed = mine & (items["change"] == change)
            shares = found.setdefault(word, {}).setdefault(change, {})
            for length in of.lengths:
                there = changed & (items["length"] == length)
                seeds = sorted(set(items["seed"][there].tolist()))
                share = mean([float(items["value"][there & (items["seed"] == seed)].mean()) for seed in seeds])
                if share is not None:
                    shares[str(length)] = share
    return found
