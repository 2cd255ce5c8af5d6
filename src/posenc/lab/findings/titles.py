"""What readers of findings call an encoding, which task they look at first, and who is best there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posenc import catalogue
from posenc.bilingual import Words
from posenc.lab.experiment.arm import RANDOMIZED


def title(arm: str) -> Words:
    """RoPE; Transformer-XL; Mine, of mine.py:Mine; RoPE + random positions."""
    encoding = arm.removesuffix(RANDOMIZED)
    entry = catalogue.BY_NAME.get(encoding)
    name = encoding.rpartition(":")[2] if entry is None else entry.title.en
    return Words(f"{name} + random positions", f"{name}＋随机位置") if arm != encoding else Words(name, name)


def main_task(findings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model; without one the first task that reads left to right, or the first."""
    tasks: Sequence[Mapping[str, Any]] = findings["tasks"]
    preferred = [
        *(task for task in tasks if task["name"] == "language_model"),
        *(task for task in tasks if task["causal"]),
        *tasks,
    ]
    return preferred[0]


def worse(task: Mapping[str, Any], number: float) -> float:
    """A key to sort by, the best first: bits, or exact match."""
    return number if task["measure"] == "bits" else -number


def best(task: Mapping[str, Any], arms: Sequence[Mapping[str, Any]], length: int) -> list[Mapping[str, Any]]:
    """Of arms with a number there the best, and those that cannot be told from it: a seed orders them the other way, or
    the same.
    """
    first, *others = sorted(arms, key=lambda arm: worse(task, arm["cells"][str(length)]["mean"]))
    ours = first["cells"][str(length)]["seeds"]

    def ties(arm: Mapping[str, Any]) -> bool:
        theirs = arm["cells"][str(length)]["seeds"]
        return any(worse(task, ours[seed]) >= worse(task, theirs[seed]) for seed in ours.keys() & theirs.keys())

    return [first, *filter(ties, others)]


def after_training(task: Mapping[str, Any]) -> tuple[int, dict[str, float]] | None:
    """What each change of the frequencies comes to, the best first, at 4× or else the longest length that all of them
    have; None where there is nothing to compare.
    """
    means = {
        one["change"]: {length: cell["mean"] for length, cell in one["cells"].items() if cell.get("mean") is not None}
        for one in task["after"]
    }
    shared = [n for n in task["lengths"] if n > task["length"] and all(str(n) in of for of in means.values())]
    if len(means) < 2 or not shared:
        return None
    length = 4 * task["length"] if 4 * task["length"] in shared else shared[-1]
    ordered = sorted(means, key=lambda name: worse(task, means[name][str(length)]))
    return length, {name: means[name][str(length)] for name in ordered}
