"""Which bias it is: slopes of a straight line, or buckets of distances. Biases count up to a constant for each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import HIDDEN, Subject, arange
from posenc.encodings.alibi import alibi_slopes
from posenc.encodings.t5 import bucket_starts

KEYS = 300
ALIBI = "ALiBi, Press et al. 2021"
T5_SIZES = ((32, 128), (32, 256), (64, 128), (64, 256), (16, 128), (320, 800))


class Precision(NamedTuple):
    """How exactly a bias was measured.

    same   differences up to this are none
    share  of its largest entry, that may be rounding
    least  what the bias must stay above to be seen: below it looks hidden
    """

    same: float
    share: float
    least: float


def identity(subject: Subject) -> Identity:
    """Slopes and their convention, or the bucket boundaries and T5's sizes that have them."""
    keys = min(KEYS, subject.reach + 1)

    def row(i: int) -> Tensor:
        try:
            return subject.bias(torch.tensor([[i]]), arange(0, keys))[0, :, 0]
        except NotImplementedError:  # it counts queries itself
            return subject.bias(arange(0, keys), arange(0, keys))[0, :, i]

    return of_curves(row, keys, Precision(1e-9, 2 * subject.rounding, HIDDEN / 2))


def of_curves(row: Callable[[int], Tensor], keys: int, precision: Precision) -> Identity:
    """From a function that gives the bias [h, j] of one query over keys 0 … keys - 1."""
    last = row(keys - 1)
    seen = torch.isfinite(last)
    reached = _reached(last)
    near = int(reached.min())
    if not near:
        return _hidden(blind=bool(seen[:, :-1].all()))
    if near < keys:
        inner = of_curves(lambda i: row(i)[:, :near], near, precision)
        if torch.equal(_reached(row(keys - 2)[:, :-1]), reached.clamp(max=keys - 1)):
            return _of_window(inner, last[:, keys - near :], reached, precision, keys)
        by_place = Difference("hides", say("how many keys a query sees depends on where it is"))
        differences, sentence = (*inner.differences, by_place), f"{inner.sentence}; {by_place.words.en}"
        return replace(inner, convention=None, sentence=sentence, differences=differences, bug="hidden by place")
    curve = (last - last[:, -1:]).flip(1)  # [h, distance]
    facts: dict[str, Any] = {"n_heads": len(curve)}
    middle = row(keys // 2)
    after = middle[:, keys // 2 + 1 :]
    facts["future"] = "hidden" if not bool(torch.isfinite(after).any()) else "seen"
    if float(curve.abs().max()) <= precision.same:
        same = Difference("kind", say("keys before the query all have the same bias"))
        ahead = _differs(after, after[:, :1], precision)
        bug = "bucket sign" if ahead else None
        return Identity(facts, None, "the same bias at every distance", "T5" if ahead else "NoPE", (same,), bug)
    distance = torch.arange(keys, dtype=torch.float64)
    slopes = -curve[:, -1] / (keys - 1)
    share = 1e-3 + precision.share
    straight = float((curve + slopes[:, None] * distance).abs().max()) <= share * float(curve.abs().max()) + precision.same
    if straight:
        return _sloped(facts, slopes, middle, share * slopes.abs() + precision.same / (keys - 1))
    return _bucketed(facts, curve, middle, precision)


def _reached(row: Tensor) -> Tensor:
    """How many keys up to its own the last query of a row [h, j] sees, one after the other [h]."""
    return torch.isfinite(row).flip(1).long().cumprod(1).sum(1)


def _hidden(*, blind: bool) -> Identity:
    """The token itself, or all keys up to it."""
    words = say("the token itself is hidden") if blind else say("keys before the query are hidden")
    sentence = "the token itself is hidden" if blind else "keys at or before the query are hidden"
    hidden = (Difference("hides", words),)
    return Identity({"hides": True}, None, sentence, "a causal mask", hidden, "hides itself" if blind else None)


def _of_window(inner: Identity, seen: Tensor, reached: Tensor, precision: Precision, keys: int) -> Identity:
    """What is seen, `inner`, before keys that are hidden from some distance on. A head without a window sees all `keys`."""
    near = seen.shape[1]
    if float((seen - seen[:, -1:]).min()) < precision.least:  # so steep that it ends where masks or roundings begin
        if precision.least > HIDDEN / 2:
            return replace(inner, sentence=f"{inner.sentence}; seen up to distance {near - 1}")
        far = Difference("hides", say("keys from distance {near} on are hidden, or below -10 000", near=near))
        sentence = f"{inner.sentence}; keys from distance {near} on are hidden"
        return replace(inner, convention=None, sentence=sentence, differences=(*inner.differences, far))
    windows = sorted(set(reached.tolist()))
    facts = {
        **inner.facts,
        "window": near if windows == [near] else [size if size < keys else 0 for size in reached.tolist()],
    }
    if windows == [1]:
        itself = Difference("window", say("a token sees itself and nothing else"))
        return replace(inner, facts=facts, sentence="a token sees itself and nothing else", differences=(itself,))
    listed = ", ".join(str(size) if size < keys else "all" for size in windows)
    return replace(inner, facts=facts, sentence=f"{inner.sentence}; a window of {listed} keys")


def _differs(a: Tensor, b: Tensor, precision: Precision) -> bool:
    """Whether two biases differ, all of whose numbers must be finite."""
    return bool(torch.isfinite(a).all()) and bool(((a - b).abs() > precision.same).any())


def _sloped(facts: dict[str, Any], slopes: Tensor, middle: Tensor, off: Tensor) -> Identity:
    """`off` [h]: how far the slopes may be off."""
    n = len(slopes)
    facts |= {"kind": "linear", "slopes": [round(float(slope), 7) for slope in slopes]}
    facts["sign"] = "falls with distance" if bool((slopes > 0).all()) else "rises with distance"
    usual = torch.tensor(alibi_slopes(n), dtype=torch.float64)
    if facts["future"] == "seen":
        at = middle.shape[1] // 2
        ahead = middle[:, -1] - middle[:, at]
        facts["future_slope"] = "falls" if bool((ahead < 0).all()) else "rises" if bool((ahead > 0).all()) else "mixed"
    matches = bool(((slopes - usual).abs() <= off).all())
    by_head = bool(((slopes.sort().values - usual.sort().values).abs() <= off.sort().values).all())
    convention = ALIBI if matches else None
    listed = ", ".join(f"{float(slope):.4g}" for slope in slopes[:4]) + (" …" if n > 4 else "")
    sentence = f"linear in the distance, {facts['sign']}, slopes {listed}"
    if convention:
        return Identity(facts, convention, f"{sentence}; matches {convention}", ALIBI)
    ratio = slopes / usual
    if by_head:
        sentence += "; ALiBi's slopes in another order of the heads"
        how = say("ALiBi's slopes in another order of the heads")
    else:
        theirs = ", ".join(f"{float(slope):.4g}" for slope in usual[:4])
        sentence += f"; nearest: ALiBi's for {n} heads, {theirs}"
        how = say("slopes {ours} instead of {theirs}", ours=listed, theirs=theirs)
        if bool(((ratio - ratio[0]).abs() <= 1e-3 * ratio.abs()).all()):
            how = say("ALiBi's slopes times {factor:.4g}", factor=float(ratio[0]))
    return Identity(facts, None, sentence, ALIBI, (Difference("slopes", how),))


def _bucketed(facts: dict[str, Any], curve: Tensor, middle: Tensor, precision: Precision) -> Identity:
    keys = curve.shape[1]
    step = (curve[:, 1:] - curve[:, :-1]).abs().amax(0)
    starts = [n + 1 for n in range(keys - 1) if step[n] > precision.same]
    if len(starts) > keys // 2:
        curve_kind = Difference("kind", say("every distance has a value of its own, on no straight line and in no buckets"))
        sentence = "a curve over distances, with a value of its own at each"
        return Identity(facts | {"kind": "curve"}, None, sentence, None, (curve_kind,))
    facts |= {"kind": "buckets", "bucket_starts": starts}
    after = middle[:, curve.shape[1] // 2 + 1 :]
    before = middle[:, : curve.shape[1] // 2].flip(1)[:, : after.shape[1]]
    both = _differs(after, after[:, :1], precision)
    mirrored = both and not _differs(before[:, : after.shape[1]], after[:, : before.shape[1]], precision)
    sides = 2 if both else 1
    numbers = torch.equal(middle, middle.round())  # of buckets, not what they hold: those after the query come last
    bug = "direction lost" if mirrored else None
    if both and numbers and float(before.max()) > float(after.max()):
        bug = "bucket sign"
    sizes = _t5_sizes(starts, sides, keys)
    if sizes is None:
        listed = ", ".join(map(str, starts[:24])) + (" …" if len(starts) > 24 else "")
        other = Difference(
            "bucket_starts", say("buckets begin at distances {starts}, as T5's of no usual size do", starts=listed)
        )
        return Identity(
            facts, None, f"buckets that begin at distances {listed}; T5's of no usual size", "T5", (other,), bug
        )
    facts |= {"n_buckets": sizes[0], "max_distance": sizes[1]} | ({} if bug else {"bidirectional": both})
    name = f"T5, {sizes[0]} buckets, max_distance {sizes[1]}, {'both ways' if both else 'one way'}"
    if bug:
        turned = Difference("bidirectional", say("keys before and after the query are not told apart as it does"))
        return Identity(facts, None, f"buckets; nearest: {name}", name, (turned,), bug)
    if sizes not in T5_SIZES:
        size = say("{buckets} buckets up to distance {farthest} are no usual size", buckets=sizes[0], farthest=sizes[1])
        return Identity(facts, None, f"buckets; {name}", "T5", (Difference("n_buckets", size),))
    return Identity(facts, name, f"buckets; matches {name}", name)


def _t5_sizes(starts: list[int], sides: int, keys: int) -> tuple[int, int] | None:
    """(n_buckets, max_distance) of T5 whose buckets begin there: usual ones, or the roundest that give the same."""
    for n_buckets, max_distance in T5_SIZES:
        if starts == [n for n in _t5_starts(n_buckets // sides, max_distance) if n < keys]:
            return n_buckets, max_distance
    exact = next((n for n, start in enumerate(starts) if start != n + 1), len(starts))
    for per_side in (len(starts) + 1, 2 * exact):  # all buckets begin within reach, or not
        alone = per_side // 2
        if 1 <= alone <= exact < len(starts) < per_side:
            power = (per_side - alone) / (len(starts) - alone)  # of the last one that does, on the way to max_distance
            least, most = (alone * (n / alone) ** power for n in (starts[-1] - 1, starts[-1]))
            tried = range(max(int(least), alone + 1), int(most) + 2)
            fit = [n for n in tried if starts == [start for start in _t5_starts(per_side, n) if start < keys]]
            if fit:
                return per_side * sides, min(fit, key=lambda n: len(str(n).rstrip("0")))
    return None


def _t5_starts(per_side: int, max_distance: int) -> list[int]:
    return [*range(1, per_side // 2 + 1), *bucket_starts(per_side, max_distance)]
