"""How numbers of the findings are named and written, the same in the page, the pictures and the Markdown.

Bits are written as 2.24 (2.241 where all scores of a column are close), exact match as a percentage, 97.3. A cell without a
number states the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from posenc.lab.findings.comparing import worse
from posenc.lab.findings.criteria import NOT_LEARNT
from posenc.lab.findings.wording import because
from posenc.lab.records.record import LAST_WINDOW
from posenc.lab.report.words import phrase, same
from posenc.support.languages import Words

Findings = Mapping[str, Any]
Task = Mapping[str, Any]
Arm = Mapping[str, Any]

Kind = Literal["number", "not learnt", "cannot", "failed", "missing"]
CLOSE = 0.05  # bits between the best and the worst score of a column
STRETCHES = 24  # a single position has few targets, and their noise would hide the curve


class Score(NamedTuple):
    """The score of a cell: `words` are its text; `number` and `seeds` are empty if it has no score."""

    kind: Kind
    words: Words
    number: float | None = None
    seeds: tuple[float, ...] = ()


def against(task: Task) -> Words:
    """What scores at longer lengths are compared with."""
    return phrase(f"against {task['against']}")


def has_window(task: Task) -> bool:
    return bool(task["against"] == LAST_WINDOW)


def window(task: Task, scored: Mapping[str, Any]) -> Words:
    """The score of an arm, or of a change of it, cut to the trained length."""
    found = scored.get("last_window")
    return same("–" if found is None else value(task, found["mean"], decimals(task, task["length"])))


def cell(task: Task, arm: Arm, length: int) -> Score:
    """The cell at a length."""
    data = arm["cells"].get(str(length)) or {}
    state = data.get("state") or (arm["state"] if data.get("mean") is None else None)
    if state and state != NOT_LEARNT:
        return Score(kind_of(state), reason(state))
    if data.get("mean") is None:
        return Score("missing", phrase("missing")) if arm["learnt"] else Score("not learnt", phrase("not learnt"))
    number = data["mean"]
    seeds = tuple(data["seeds"][seed] for seed in sorted(data["seeds"], key=int))
    return Score(
        "number" if arm["learnt"] else "not learnt", same(value(task, number, decimals(task, length))), number, seeds
    )


def kind_of(state: str) -> Kind:
    """The kind of a cell in a state other than "not learnt"."""
    return "cannot" if state.startswith("cannot") else "failed" if state.startswith("failed") else "missing"


def reason(state: str) -> Words:
    """A state in both languages; error messages stay as they are."""
    kind, _, why = state.partition(": ")
    if state == NOT_LEARNT:
        return phrase("not learnt")
    if kind == "cannot":
        return phrase("cannot", why=because(why))
    return phrase("failed", why=because(why)) if kind == "failed" else phrase("missing")


def is_bits(task: Task) -> bool:
    return bool(task["measure"] == "bits")


def scale(task: Task) -> float:
    """Exact match is written in hundredths."""
    return 1.0 if is_bits(task) else 100.0


def value(task: Task, number: float, decimals: int = 2) -> str:
    """`decimals` are those of bits."""
    return f"{number:.{decimals}f}" if is_bits(task) else f"{100 * number:.1f}"


def decimals(task: Task, length: int) -> int:
    """Three for scores at a length that differ by less than CLOSE, which would look equal with two."""
    means = [mean for arm in task["arms"] if (mean := mean_at(arm, str(length))) is not None]
    return 3 if len(means) > 1 and max(means) - min(means) < CLOSE else 2


def unit(task: Task) -> Words:
    return phrase("bits" if is_bits(task) else "exact")


def gained(task: Task, lost: float) -> str:
    """A rise in bits; a fall of the exact match in points."""
    return f"{lost:+z.2f}" if is_bits(task) else f"{-100 * lost:+z.1f}"


def times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def fold(number: float) -> str:
    return f"{number:.3g}×"


def factor(factor: Mapping[str, Any] | None, top: float) -> str:
    """The factor as text: ">8×" if the longest length, `top` times the trained one, is valid; the interval in brackets."""
    if factor is None:
        return "–"

    def bound(number: float) -> str:
        return (">" if number >= top else "") + f"{number:.3g}"

    low, high = factor["low"], factor["high"]
    text = (">" if factor["censored"] else "") + fold(factor["value"])
    return text if low is None or low == high == factor["value"] else f"{text} ({bound(low)}–{bound(high)})"


def home(task: Task) -> str:
    return str(task["length"])


def far(task: Task) -> str:
    return str(max(task["lengths"]))


def top(task: Task) -> float:
    """The longest length as a multiple of the trained length."""
    return float(max(task["lengths"]) / task["length"])


def arms_of(findings: Findings) -> list[str]:
    """Every encoding of the experiment, in its order."""
    return list(dict.fromkeys(arm["name"] for task in findings["tasks"] for arm in task["arms"]))


def remark(arm: Arm) -> Words:
    """Why the encoding is not ranked, in short: not learnt, or still improving at the end of training."""
    if arm["state"] == NOT_LEARNT:
        return phrase("not learnt short")
    return phrase("improving short") if arm["converged"] is False else Words("")


def arms_by_positions(task: Task) -> Iterator[tuple[Arm, str]]:
    """The encodings in order, each as it is scored, and then at positions 0, 1, 2, … if it is scored at random ones.

    The second part names these positions; it is "" for the first.
    """
    for arm in in_order(task):
        yield arm, ""
        if arm["contiguous"]:
            yield {**arm, "cells": arm["contiguous"], "factor": None, "last_window": None}, "0, 1, 2, …"


def find(task: Task, name: str) -> Arm | None:
    return next((arm for arm in task["arms"] if arm["name"] == name), None)


def mean_at(arm: Arm, length: str) -> float | None:
    mean: float | None = (arm["cells"].get(length) or {}).get("mean")
    return mean


def learnt(task: Task) -> list[Arm]:
    """Encodings that learnt the trained length, the best at that length first."""
    arms = [arm for arm in task["arms"] if arm["learnt"] and mean_at(arm, home(task)) is not None]
    return sorted(arms, key=lambda arm: worse(task, arm["cells"][home(task)]["mean"]))


def in_order(task: Task) -> list[Arm]:
    """Encodings with a score at every length first, by their mean; then the others by their score at the trained length."""

    def key(arm: Arm) -> tuple[int, float]:
        at_home = mean_at(arm, home(task))
        if at_home is None:
            return 3, 0.0
        if arm["learnt"] and arm["area"] is not None:
            return 0, worse(task, arm["area"])
        return 1 if arm["learnt"] else 2, worse(task, at_home)

    return sorted(task["arms"], key=key)


def stretch(task: Task) -> int:
    """How many neighbouring positions are averaged to one point of the loss by position."""
    longest = max((arm["by_position"]["length"] for arm in learnt(task) if arm["by_position"]), default=0)
    return max(-(-longest // STRETCHES), 1)


def along(task: Task, arm: Arm) -> list[tuple[float, float]]:
    """Loss by position: mean position and mean bits of each group of neighbouring positions."""
    width = stretch(task)
    groups: dict[int, list[tuple[float, float]]] = {}
    for position, bits in zip(arm["by_position"]["position"], arm["by_position"]["bits"], strict=True):
        groups.setdefault(int(position // width), []).append((position, bits))
    means = (zip(*groups[n], strict=True) for n in sorted(groups))
    return [(sum(positions) / len(positions), sum(bits) / len(bits)) for positions, bits in means]


def long_form(findings: Findings) -> Iterator[dict[str, Any]]:
    """Every number of every seed, and every cell without one."""
    for task in findings["tasks"]:
        for arm in task["arms"]:
            for mode, setting, cells in (
                ("random positions" if arm["contiguous"] else "same targets", "trained", arm["cells"]),
                ("same targets", "trained", arm["contiguous"] or {}),
                ("last window", "trained", {home(task): arm["last_window"]} if arm["last_window"] else {}),
                ("non-overlapping", "trained", arm["non_overlapping"]),
                ("same targets", "oracle", arm["oracle"] or {}),
            ):
                yield from _cells(task, arm, mode, setting, cells)
        for name, by_seed in task.get("by_depth", {}).get("farthest", {}).items():
            cells = {far(task): {"seeds": {seed: share for seed, share in by_seed.items() if share is not None}}}
            yield from _cells(task, {"name": name}, "farthest quarter", "trained", cells)
        for after in task["after"]:
            if after["change"] and after["last_window"]:
                yield from _cells(
                    task, {"name": "rope"}, "last window", after["change"], {home(task): after["last_window"]}
                )
            yield from _cells(task, {"name": "rope"}, "same targets", after["change"] or "unchanged", after["cells"])


def _cells(task: Task, arm: Arm, mode: str, setting: str, cells: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for length, data in cells.items():
        where = {
            "task": task["name"],
            "measure": task["measure"],
            "encoding": arm["name"],
            "setting": setting,
            "mode": mode,
            "length": int(length),
        }
        seeds = data.get("seeds") or {}
        for seed, number in seeds.items():
            yield {**where, "seed": int(seed), "value": number, "state": ""}
        if not seeds:
            yield {**where, "seed": "", "value": "", "state": data.get("state") or arm.get("state") or ""}


def gains(findings: Findings) -> Iterator[dict[str, Any]]:
    """What each encoding, and each change of RoPE, gains beyond the trained length, at every longer length."""
    for task in findings["tasks"]:
        changes = [("rope", after["change"], after["gained"]) for after in task["after"] if after["change"]]
        for name, setting, gained in [*((arm["name"], "trained", arm["gained"]) for arm in task["arms"]), *changes]:
            for length, found in gained.items():
                low, high = found["interval"]
                share_low, share_high = found["share_interval"] or (None, None)
                yield {
                    "task": task["name"],
                    "encoding": name,
                    "setting": setting,
                    "length": int(length),
                    "seeds": len(found["seeds"]),
                    "gained": found["mean"],
                    "low": low,
                    "high": high,
                    "share": found["share"],
                    "share_low": share_low,
                    "share_high": share_high,
                }
