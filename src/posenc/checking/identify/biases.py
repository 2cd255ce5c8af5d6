"""Which bias it is: slopes of a straight line, or buckets of distances. Biases count up to a constant for each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import Subject, arange
from posenc.encodings.alibi import alibi_slopes
from posenc.encodings.t5 import bucket_starts

KEYS = 300
NEAR = 16  # distances in a row that show a curve
ALIBI = "ALiBi, Press et al. 2021"
T5_SIZES = ((32, 128), (32, 256), (64, 128), (64, 256), (16, 128), (320, 800))


def identity(subject: Subject) -> Identity:
    """Slopes and their convention, or the bucket boundaries and T5's sizes that have them."""
    keys = min(KEYS, subject.reach + 1)

    def row(i: int) -> Tensor:
        try:
            return subject.bias(torch.tensor([[i]]), arange(0, keys))[0, :, 0]
        except NotImplementedError:  # it counts queries itself
            return subject.bias(arange(0, keys), arange(0, keys))[0, :, i]

    return of_curves(row, keys)


def of_curves(row: Callable[[int], Tensor], keys: int) -> Identity:
    """From a function that gives the bias [h, j] of one query over keys 0 … keys - 1."""
    last = row(keys - 1)
    if not bool(torch.isfinite(last).all()):
        near = int(torch.isfinite(last).all(0).flip(0).long().cumprod(0).sum())  # distances that every head sees
        if near >= NEAR:
            far = Difference("hides", say("keys from distance {near} on are hidden, or below -10 000", near=near))
            inner = of_curves(lambda i: row(i)[:, :near], near)
            sentence = f"{inner.sentence}; keys from distance {near} on are hidden"
            return replace(inner, convention=None, sentence=sentence, differences=(*inner.differences, far))
        blind = bool(torch.isfinite(last[:, :-1]).all())
        hidden = Difference(
            "hides", say("the token itself is hidden") if blind else say("keys before the query are hidden")
        )
        sentence = "the token itself is hidden" if blind else "keys at or before the query are hidden"
        return Identity({"hides": True}, None, sentence, "a causal mask", (hidden,), "hides itself" if blind else None)
    curve = (last - last[:, -1:]).flip(1)  # [h, distance]
    facts: dict[str, Any] = {"n_heads": len(curve)}
    middle = row(keys // 2)
    after = middle[:, keys // 2 + 1 :]
    facts["future"] = "hidden" if not bool(torch.isfinite(after).any()) else "seen"
    if not bool(curve.any()):
        same = Difference("kind", say("keys before the query all have the same bias"))
        ahead = bool(torch.isfinite(after).all()) and bool((after != after[:, :1]).any())
        bug = "bucket sign" if ahead else None
        return Identity(facts, None, "the same bias at every distance", "T5" if ahead else "NoPE", (same,), bug)
    distance = torch.arange(keys, dtype=torch.float64)
    slopes = -curve[:, -1] / (keys - 1)
    straight = float((curve + slopes[:, None] * distance).abs().max()) <= 1e-3 * float(curve.abs().max())
    if straight:
        return _sloped(facts, slopes, middle)
    return _bucketed(facts, curve, middle)


def _sloped(facts: dict[str, Any], slopes: Tensor, middle: Tensor) -> Identity:
    n = len(slopes)
    facts |= {"kind": "linear", "slopes": [round(float(slope), 7) for slope in slopes]}
    facts["sign"] = "falls with distance" if bool((slopes > 0).all()) else "rises with distance"
    usual = torch.tensor(alibi_slopes(n), dtype=torch.float64)
    if facts["future"] == "seen":
        at = middle.shape[1] // 2
        ahead = middle[:, -1] - middle[:, at]
        facts["future_slope"] = "falls" if bool((ahead < 0).all()) else "rises" if bool((ahead > 0).all()) else "mixed"
    matches = bool(((slopes - usual).abs() <= 1e-3 * usual).all())
    by_head = bool(((slopes.sort().values - usual.sort().values).abs() <= 1e-3 * usual.sort().values).all())
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


def _bucketed(facts: dict[str, Any], curve: Tensor, middle: Tensor) -> Identity:
    keys = curve.shape[1]
    step = (curve[:, 1:] - curve[:, :-1]).abs().amax(0)
    starts = [n + 1 for n in range(keys - 1) if step[n] > 1e-9]
    if len(starts) > keys // 2:
        curve_kind = Difference("kind", say("every distance has a value of its own, on no straight line and in no buckets"))
        sentence = "a curve over distances, with a value of its own at each"
        return Identity(facts | {"kind": "curve"}, None, sentence, None, (curve_kind,))
    facts |= {"kind": "buckets", "bucket_starts": starts}
    after = middle[:, curve.shape[1] // 2 + 1 :]
    before = middle[:, : curve.shape[1] // 2].flip(1)[:, : after.shape[1]]
    mirrored = torch.equal(before[:, : after.shape[1]], after[:, : before.shape[1]])
    both = bool(torch.isfinite(after).all()) and bool((after != after[:, :1]).any())
    sides = 2 if both else 1
    numbers = torch.equal(middle, middle.round())  # of buckets, not what they hold: those after the query come last
    bug = "direction lost" if both and mirrored else None
    if both and numbers and float(before.max()) > float(after.max()):
        bug = "bucket sign"
    for n_buckets, max_distance in T5_SIZES:
        per_side = n_buckets // sides
        known = [*range(1, per_side // 2 + 1), *bucket_starts(per_side, max_distance)]
        if starts == [n for n in known if n < keys]:
            facts |= {"n_buckets": n_buckets, "max_distance": max_distance} | ({} if bug else {"bidirectional": both})
            name = f"T5, {n_buckets} buckets, max_distance {max_distance}, {'both ways' if both else 'one way'}"
            if bug:
                turned = Difference("bidirectional", say("keys before and after the query are not told apart as it does"))
                return Identity(facts, None, f"buckets; nearest: {name}", name, (turned,), bug)
            return Identity(facts, name, f"buckets; matches {name}", name)
    listed = ", ".join(map(str, starts[:24])) + (" …" if len(starts) > 24 else "")
    other = Difference(
        "bucket_starts", say("buckets begin at distances {starts}, as T5's of no usual size do", starts=listed)
    )
    return Identity(facts, None, f"buckets that begin at distances {listed}; T5's of no usual size", "T5", (other,), bug)


def identity_of_attention(subject: Subject) -> Identity:
    """The softmax scale, and the bias that queries of zeros reveal."""
    d = subject.width
    keys = min(d, 24, subject.reach + 1)
    k = torch.zeros(1, subject.n_kv_heads, keys, d)
    v = torch.eye(keys, d).expand(1, subject.n_kv_heads, keys, d).contiguous()
    at = arange(0, keys)

    def logits(i: int, q: Tensor, k: Tensor) -> Tensor:
        """[h, j] up to a constant."""
        probabilities = subject(q, k, v, torch.tensor([[i]]), at)[0, :, 0, :keys].detach().double()
        return probabilities.log()

    nothing = torch.zeros(1, subject.n_heads, 1, d)
    sums = subject(nothing, k, v, torch.tensor([[keys - 1]]), at)[0, :, 0, :keys].sum(-1)
    if not bool(((sums - 1).abs() < 1e-4).all()):
        no_average = Difference("kind", say("the output is no average of values"))
        return Identity({}, None, "not identified: the output is no average of values", None, (no_average,))
    of_bias = of_curves(lambda i: logits(i, nothing, k), keys)
    facts = dict(of_bias.facts)
    facts.pop("future", None)
    differences = tuple(d for d in of_bias.differences if d.fact != "kind" or "kind" in facts)  # no bias is usual
    if "hides" in facts:
        return replace(of_bias, facts=facts, sentence=f"softmax scale not measured; bias: {of_bias.sentence}")
    q, other_k = nothing.clone(), k.clone()
    q[..., 0], other_k[:, :, keys - 1, 0] = 1.0, 4.0
    without, with_key = (logits(keys - 1, q, this)[0] for this in (k, other_k))
    # only the last key, at the query's own position, has a product, so that a rotation does not show
    scale = float((with_key - without)[-1] - (with_key - without)[0]) / 4.0
    facts["softmax_scale"] = round(scale, 5)
    usual, none = abs(scale - d**-0.5) < 1e-3 * d**-0.5, abs(scale - 1) < 1e-3
    named = "1/√d" if usual else "none" if none else f"{scale:.5g}"
    if not usual and not (none and "n_buckets" in facts):  # T5 does not scale
        how = say("the softmax scale is {scale:.5g} instead of 1/√d = {usual:.5g}", scale=scale, usual=d**-0.5)
        differences = (Difference("softmax_scale", how), *differences)
    sentence = f"softmax scale {named}; bias: {of_bias.sentence}"
    near = of_bias.nearest if "kind" in facts else "attention with 1/√d"
    return Identity(facts, None if differences else of_bias.convention, sentence, near, differences, of_bias.bug)
