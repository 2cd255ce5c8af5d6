"""Which bias it is: slopes of a straight line, or buckets of distances. Biases count up to a constant for each query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.checking.result import Identity
from posenc.checking.subject import Subject, arange
from posenc.encodings.alibi import alibi_slopes
from posenc.encodings.t5 import bucket_starts

KEYS = 300
T5_SIZES = ((32, 128), (32, 256), (64, 128), (64, 256), (16, 128), (320, 800))


def identity(subject: Subject) -> Identity:
    """Slopes and their convention, or the bucket boundaries and T5's sizes that have them."""
    keys = min(KEYS, subject.reach + 1)
    return of_curves(lambda i: subject.bias(torch.tensor([[i]]), arange(0, keys))[0, :, 0], keys)


def of_curves(row: Callable[[int], Tensor], keys: int) -> Identity:
    """From a function that gives the bias [h, j] of one query over keys 0 … keys - 1."""
    last = row(keys - 1)
    if not bool(torch.isfinite(last).all()):
        return Identity({"hides": True}, None, "keys at or before the query are hidden")
    curve = (last - last[:, -1:]).flip(1)  # [h, distance]
    facts: dict[str, Any] = {"n_heads": len(curve)}
    middle = row(keys // 2)
    after = middle[:, keys // 2 + 1 :]
    facts["future"] = "hidden" if not bool(torch.isfinite(after).any()) else "seen"
    if not bool(curve.any()):
        return Identity(facts, None, "the same bias at every distance")
    distance = torch.arange(keys, dtype=torch.float64)
    slopes = -curve[:, -1] / (keys - 1)
    straight = float((curve + slopes[:, None] * distance).abs().max()) <= 1e-3 * float(curve.abs().max())
    if straight:
        return _sloped(facts, slopes, middle)
    return _bucketed(facts, curve, middle)


def _sloped(facts: dict[str, Any], slopes: Tensor, middle: Tensor) -> Identity:
    n = len(slopes)
    facts |= {"kind": "linear", "slopes": [round(float(one), 7) for one in slopes]}
    facts["sign"] = "falls with distance" if bool((slopes > 0).all()) else "rises with distance"
    usual = torch.tensor(alibi_slopes(n), dtype=torch.float64)
    if facts["future"] == "seen":
        at = middle.shape[1] // 2
        ahead = middle[:, -1] - middle[:, at]
        facts["future_slope"] = "falls" if bool((ahead < 0).all()) else "rises" if bool((ahead > 0).all()) else "mixed"
    matches = bool(((slopes - usual).abs() <= 1e-3 * usual).all())
    by_head = bool(((slopes.sort().values - usual.sort().values).abs() <= 1e-3 * usual.sort().values).all())
    convention = "ALiBi, Press et al. 2021" if matches else None
    said = ", ".join(f"{float(one):.4g}" for one in slopes[:4]) + (" …" if n > 4 else "")
    sentence = f"linear in the distance, {facts['sign']}, slopes {said}"
    if convention:
        sentence += f"; matches {convention}"
    elif by_head:
        sentence += "; ALiBi's slopes in another order of the heads"
    else:
        sentence += f"; nearest: ALiBi's for {n} heads, {', '.join(f'{float(one):.4g}' for one in usual[:4])}"
    return Identity(facts, convention, sentence)


def _bucketed(facts: dict[str, Any], curve: Tensor, middle: Tensor) -> Identity:
    keys = curve.shape[1]
    step = (curve[:, 1:] - curve[:, :-1]).abs().amax(0)
    starts = [n + 1 for n in range(keys - 1) if step[n] > 1e-9]
    if len(starts) > keys // 2:
        return Identity(facts | {"kind": "curve"}, None, "a curve over distances, with a value of its own at each")
    facts |= {"kind": "buckets", "bucket_starts": starts}
    after = middle[:, curve.shape[1] // 2 + 1 :]
    before = middle[:, : curve.shape[1] // 2].flip(1)[:, : after.shape[1]]
    mirrored = torch.equal(before[:, : after.shape[1]], after[:, : before.shape[1]])
    both = bool(torch.isfinite(after).all()) and bool((after != after[:, :1]).any()) and not mirrored
    sides = 2 if both else 1
    for n_buckets, max_distance in T5_SIZES:
        per_side = n_buckets // sides
        known = [*range(1, per_side // 2 + 1), *bucket_starts(per_side, max_distance)]
        if starts == [n for n in known if n < keys]:
            name = f"T5, {n_buckets} buckets, max_distance {max_distance}, {'both ways' if both else 'one way'}"
            facts |= {"n_buckets": n_buckets, "max_distance": max_distance, "bidirectional": both}
            return Identity(facts, name, f"buckets; matches {name}")
    said = ", ".join(map(str, starts[:24])) + (" …" if len(starts) > 24 else "")
    return Identity(facts, None, f"buckets that begin at distances {said}; T5's of no usual size")


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
        return Identity({}, None, "not identified: the output is no average of values")
    found = of_curves(lambda i: logits(i, nothing, k), keys)
    facts = dict(found.facts)
    facts.pop("future", None)
    q, one = nothing.clone(), k.clone()
    q[..., 0], one[:, :, keys - 1, 0] = 1.0, 4.0
    without, with_key = (logits(keys - 1, q, this)[0] for this in (k, one))
    # only the last key, at the query's own position, has a product, so that a rotation does not show
    scale = float((with_key - without)[-1] - (with_key - without)[0]) / 4.0
    facts["softmax_scale"] = round(scale, 5)
    said = "1/√d" if abs(scale - d**-0.5) < 1e-3 * d**-0.5 else "none" if abs(scale - 1) < 1e-3 else f"{scale:.5g}"
    return Identity(facts, found.convention, f"softmax scale {said}; bias: {found.sentence}")
