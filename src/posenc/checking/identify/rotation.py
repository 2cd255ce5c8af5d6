"""What a rotation is, from what it does to unit vectors: which channels turn together, how fast, which way.

Legend: d channels, n pairs, p position.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from posenc.checking.identify import scalings
from posenc.checking.identify.conventions import compared
from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import Subject, arange

MOST_DOUBLINGS = 17
MOST_COUNTED = 255  # positions of an implementation that counts them itself
PROBES = (257, 4099, 65_537, 131_071)  # odd, so that no narrow float holds them


class Turning(NamedTuple):
    """Pairs (first, second), their signed frequencies, the magnitude, and up to which position they were followed."""

    pairs: list[tuple[int, int]]
    frequencies: np.ndarray
    magnitude: float
    farthest: int


def matrix(subject: Subject, position: int) -> np.ndarray:
    """What a head does at that position: row c is the rotated unit vector c. float64 [d, d]."""
    d = subject.width
    x = torch.eye(d).repeat(1, subject.n_heads)[:, None]
    try:
        out = subject.rows(x, torch.full((d, 1), position))
    except NotImplementedError:  # it counts positions itself: the unit vectors stand behind others
        out = subject.rows(x.repeat(1, position + 1, 1), arange(0, position + 1, d))
    return np.asarray(out[:, -1, :d].detach().double().numpy())


def mistake(subject: Subject) -> str | None:
    """The key in BUGS of a mistake that positions 0 and 1 show."""
    rest, at_one = matrix(subject, 0), matrix(subject, 1)
    if np.abs(at_one - rest).max() < 1e-6:
        return None
    if not np.allclose(rest, np.diag(np.diag(rest)), atol=1e-6):
        if np.abs(np.diag(rest)).max() < 1e-6:
            return "cosine for sine"
        return "from one" if np.allclose(at_one, rest @ rest, atol=1e-5) else None
    moved = np.abs(at_one - np.diag(np.diag(at_one)))
    partner = moved.argmax(1)
    turning = np.flatnonzero((moved.max(1) > 1e-5) & (partner[partner] == np.arange(len(partner))))
    sines, cosines, there = at_one[partner[turning], turning], at_one[turning, turning], at_one[turning, partner[turning]]
    if not len(turning) or not np.allclose(np.hypot(sines, cosines), np.abs(rest[0, 0]), atol=1e-5):
        return None
    if (sines * there > 0).all():
        return "no minus"
    angles = dict(zip(turning.tolist(), np.arctan2(np.abs(sines), cosines).tolist(), strict=True))
    if all(abs(angles[c] - angles[int(partner[c])]) < 1e-4 for c in angles):
        return None
    half = len(turning) // 2
    first = turning[0]
    tables = {half: turning[:half], 1: turning[::2]}  # gap between the channels of one angle -> the first of each two
    of_table = [gap for gap, ones in tables.items() if all(abs(angles[c] - angles.get(c + gap, 9.0)) < 1e-6 for c in ones)]
    return "mixed layouts" if of_table and abs(int(partner[first]) - int(first)) not in of_table else "one angle each"


def identity(subject: Subject) -> Identity:
    """Layout, rotary_dim, sign, base, scaling, magnitude, and in which arithmetic angles are computed."""
    if counts_by_itself(subject):
        subject = replace(subject, reach=min(subject.reach, MOST_COUNTED))
    turned, bug = turning(subject), mistake(subject)
    if not turned.pairs:
        turns = np.abs(matrix(subject, 7) - matrix(subject, 0)).max() > 1e-6
        if not turns:
            none = Difference("positions", say("nothing turns, wherever a token is"))
            return Identity({}, None, "nothing turns: no positions", "NoPE", (none,), bug)
        pairs = Difference("pairs", say("channels do not turn in pairs"))
        return Identity({}, None, "channels do not turn in pairs", "RoPE", (pairs,), bug)
    facts: dict[str, Any] = {"d_head": subject.width, "rotary_dim": 2 * len(turned.pairs)}
    facts |= _layout(turned.pairs, subject.width)
    turned = turned._replace(frequencies=with_whole_turns(turned.frequencies))
    speeds = turned.frequencies
    forward = speeds[np.abs(speeds) > 0]
    facts["sign"] = "positive" if (forward > 0).all() else "negative" if (forward < 0).all() else "mixed"
    far = min(100, max(subject.reach, 1))
    sizes = np.abs(points(turned.pairs, matrix(subject, far)))
    steady = bool(np.allclose(sizes, turned.magnitude, rtol=1e-4 + subject.rounding))
    facts["magnitude"] = round(turned.magnitude, 5) if steady else "changes with position"
    wide = facts["rotary_dim"] if not facts.get("proportional") else subject.width
    order = np.argsort([min(pair) for pair in turned.pairs])
    values = np.abs(speeds)[order]
    scaled, backwards = (
        scalings.scaling(order, wide, subject.width, turned.farthest, facts["magnitude"], subject.rounding)
        for order in (values, values[::-1])
    )
    facts |= scaled.facts
    if "base" not in facts and "base" in backwards.facts:
        facts["reversed"] = True
    facts["arithmetic"] = _arithmetic(subject, turned)
    return _named(facts, scalings.differences(scaled, facts["magnitude"], subject.rounding), bug or scaled.bug)


def with_whole_turns(speeds: np.ndarray) -> np.ndarray:
    """Frequencies of fast pairs are measured up to whole turns: these are on the progression of the slower half.

    As they are where that half is no progression, or the fast pairs are not on it.
    """
    slow = speeds[len(speeds) // 2 :]
    if len(slow) < 3 or not ((slow > 0).all() or (slow < 0).all()):
        return speeds
    index = np.arange(len(speeds))
    line = np.polyfit(index[-len(slow) :], np.log(np.abs(slow)), 1)
    foretold = np.sign(slow[0]) * np.exp(np.polyval(line, index))
    turned = speeds + 2 * math.pi * np.round((foretold - speeds) / (2 * math.pi))
    return turned if np.allclose(turned, foretold, rtol=1e-3, atol=0) else speeds


def counts_by_itself(subject: Subject) -> bool:
    """Whether it refuses one token at position 1, because it counts positions from 0."""
    try:
        subject.rows(subject.tokens(1, 1), arange(1, 1))
    except NotImplementedError:
        return True
    return False


def turning(subject: Subject) -> Turning:
    """The pairs, and their frequencies followed from position 1 in doublings as far as they stay uniform."""
    rest = matrix(subject, 0)
    first = matrix(subject, 1)
    powers = [2**n for n in range(MOST_DOUBLINGS) if 2**n <= max(subject.reach, 1)]
    mats = {1: first}
    moved = np.abs(first - np.diag(np.diag(first)))
    for p in powers[1:]:
        mats[p] = matrix(subject, p)
        moved += np.abs(mats[p] - np.diag(np.diag(mats[p])))
    partner = moved.argmax(1)
    pairs = [
        (c, int(partner[c]))
        for c in range(subject.width)
        if moved[c].max() > 1e-5 and partner[partner[c]] == c and c < partner[c]
    ]
    turns = sorted(channel for pair in pairs for channel in pair)
    magnitude = float(np.diag(rest)[turns].mean()) if pairs else 1.0  # of those that turn: others pass as they are
    followed = {pair: _followed(pair, mats, powers) for pair in pairs}
    farthest = min((far for _, far in followed.values()), default=0)
    return Turning(pairs, np.array([speed for speed, _ in followed.values()]), magnitude, farthest)


def _followed(pair: tuple[int, int], mats: dict[int, np.ndarray], powers: list[int]) -> tuple[float, int]:
    """Radians per position, and the last position at which the angle was where the earlier ones foretold it."""
    a, b = pair
    speed, far = 0.0, 1
    for p in powers:
        angle = math.atan2(mats[p][a, b], mats[p][a, a])
        whole = angle + 2 * math.pi * round((speed * p - angle) / (2 * math.pi)) if p > 1 else angle
        if p > 1 and abs(whole - speed * p) > 0.3:
            break
        speed, far = whole / p, p
    return speed, far


def _layout(pairs: list[tuple[int, int]], d: int) -> dict[str, Any]:
    """The layout, where it is one of the known ones, and which channels turn."""
    channels = sorted(c for pair in pairs for c in pair)
    r = len(channels)
    start = channels[0]
    together = channels == list(range(start, start + r))
    gaps = {b - a for a, b in pairs}
    if together and start in (0, d - r):
        where = {"trailing": True} if start else {}
        if gaps == {1} and all((a - start) % 2 == 0 for a, _ in pairs):
            return {"layout": "interleaved", **where}
        if gaps == {r // 2}:
            return {"layout": "half", **where}
    if gaps == {d // 2} and [a for a, _ in pairs] == list(range(len(pairs))):
        return {"layout": "half", "proportional": True}
    return {"pairs": [list(pair) for pair in pairs]}


def points(pairs: list[tuple[int, int]], rotation: np.ndarray) -> np.ndarray:
    """cos + i·sin of every pair, times its magnitude."""
    return np.array([rotation[a, a] + 1j * rotation[a, b] for a, b in pairs])


def _arithmetic(subject: Subject, turned: Turning) -> str:
    """In which precision angles are formed, as far as the positions in reach tell."""
    told = "exact"
    for p in PROBES:
        if p > subject.reach or p > 4 * turned.farthest:
            break
        exactly = turned.frequencies * p
        rotation = matrix(subject, p)
        unit = points(turned.pairs, rotation)
        unit /= np.maximum(np.abs(unit), 1e-30)
        off = np.abs(np.exp(1j * exactly) - unit)
        eps = 2.0**-23
        for name, ulp in (("bfloat16", 2.0**-8), ("float16", 2.0**-11)):
            position = float(torch.tensor(float(p)).to(getattr(torch, name)))
            if position == float("inf"):
                continue
            rounded = np.exp(1j * turned.frequencies * position)
            if off.max() > 0.02 and np.abs(rounded - unit).max() < 0.02 + p * eps * 4:
                return f"{name} positions"
            if off.max() > 0.02 and off.max() <= 2 * min(p * ulp, 1.0) and p * ulp > 0.02:
                told = "16 bits"
        if off.max() > 0.02 + 8 * eps * p:
            return told if told == "16 bits" else "other"
        if off.max() > 1e-5 + subject.rounding and p > 4000:
            told = "float32"
    return told


def _named(facts: dict[str, Any], of_scaling: tuple[Difference, ...], bug: str | None) -> Identity:
    """With the convention's models, or the nearest and what differs."""
    parts = [f"{facts['layout']} layout" if "layout" in facts else "pairs in an unknown layout"]
    if facts["rotary_dim"] != facts["d_head"]:
        parts.append(f"{facts['rotary_dim']} of {facts['d_head']} channels turn")
    alone = "one pair, whose frequency is 1 for every base" if "frequencies" in facts else "unknown frequencies"
    parts.append(f"base {facts['base']:,.6g}".replace(",", " ") if "base" in facts else alone)
    if "trailing" in facts:
        parts.append("the last ones")
    if "scaling" in facts:
        parts.append(facts["scaling"])
    if facts["sign"] != "positive":
        parts.append(f"turns the {'other' if facts['sign'] == 'negative' else 'one and the other'} way")
    if facts["magnitude"] != 1.0:
        parts.append(f"magnitude {facts['magnitude']}")
    parts.append(
        {"exact": "exact angles", "float32": "angles in float32"}.get(facts["arithmetic"], f"angles: {facts['arithmetic']}")
    )
    near, differences = compared(facts, of_scaling)
    models = near.models if near else None
    known = not differences and not bug and not facts.get("scaling")
    if known:
        parts.append(f"matches {models}")
    elif differences and near:
        parts.append(f"nearest: {models} ({near.layout}, base {near.base:g})")
    return Identity(facts, models if known else None, ", ".join(parts), models, differences, bug)
