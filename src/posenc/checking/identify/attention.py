"""What an attention is: its bias, its window, its sinks, and the scale and the cap of its logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.checking.attention import sinks
from posenc.checking.identify.biases import KEYS, Precision, of_curves
from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import Subject, arange

FEW = 24  # keys whose weights 16 bits still tell apart
FAR = 80.0  # a logit whose weight float32 still holds beside one of 0
CAPPED = 1000.0  # logits of larger caps are as good as not capped


def identity(subject: Subject) -> Identity:
    """The bias that queries of zeros reveal, and how a product of query and key becomes a logit."""
    keys = min(FEW if subject.rounding else KEYS, subject.reach + 1)
    nothing, k = torch.zeros(1, subject.n_heads, 1, subject.width), torch.zeros(1, subject.n_kv_heads, keys, subject.width)
    whole = weights(subject, keys - 1, nothing, k)
    if bool(whole.isnan().any()):
        return Identity({}, None, "not identified: tokens of zeros give NaN")
    sunk = None
    if not bool(((whole.sum(-1) - 1).abs() < 1e-4 + 4 * subject.rounding).all()):
        sunk = sinks(subject)
        if sunk is None:
            no_average = Difference("kind", say("the output is no average of values"))
            return Identity({}, None, "not identified: the output is no average of values", None, (no_average,))
    precision = Precision(1e-4 + 8 * subject.rounding, 0.0, -7.0 if subject.rounding else -FAR)
    of_bias = of_curves(lambda i: weights(subject, i, nothing, k).log(), keys, precision)
    facts = dict(of_bias.facts)
    facts.pop("future", None)
    differences = tuple(d for d in of_bias.differences if d.fact != "kind" or "kind" in facts)  # no bias is usual
    more = ""
    if sunk is not None:
        facts["sinks"] = [round(float(size), 4) for size in sunk]
        more = f"; sinks of {', '.join(f'{size:.4g}' for size in facts['sinks'][:4])}" + (" …" if len(sunk) > 4 else "")
    if "hides" in facts or facts.get("window") == 1:
        sentence = f"softmax scale not measured; bias: {of_bias.sentence}{more}"
        return replace(of_bias, facts=facts, sentence=sentence, differences=differences)
    told, of_logits = _logits(subject, facts)
    differences = (*of_logits, *differences)
    near = of_bias.nearest if "kind" in facts else "attention with 1/√d"
    sentence = f"{told}; bias: {of_bias.sentence}{more}"
    return Identity(facts, None if differences else of_bias.convention, sentence, near, differences, of_bias.bug)


def weights(subject: Subject, i: int, q: Tensor, k: Tensor) -> Tensor:
    """How much of each value [h, j] a query at position i reads, of keys at 0, 1, …"""
    keys, width = k.shape[2], subject.width
    parts = []
    for start in range(0, keys, width):
        v = torch.zeros(1, subject.n_kv_heads, keys, width)
        part = min(width, keys - start)
        v[:, :, start : start + part, :part] = torch.eye(part)
        out = subject(q, k, v, torch.tensor([[i]]), arange(0, keys)).detach()
        parts.append(out[0, :, 0, :part].double().masked_fill(out[0, :, 0, :part] < torch.finfo(out.dtype).tiny, 0.0))
    return torch.cat(parts, -1)


def _logits(subject: Subject, facts: dict[str, Any]) -> tuple[str, tuple[Difference, ...]]:
    """The softmax scale and the cap, put into `facts`, in words, and how they are unusual."""
    d = subject.width
    logit = _of_products(subject)
    one, four = logit(1.0), logit(4.0)
    if abs(four - one) <= (1e-3 + subject.rounding) * abs(four) and four:
        return "queries or keys are normalised, softmax scale not measured", ()
    scale = four / 4 if subject.rounding else one
    if subject.rounding and scale:
        scale *= logit(2 / scale) / 2
    usual = abs(scale - d**-0.5) < (1e-3 + subject.rounding / 2) * d**-0.5
    facts["softmax_scale"] = round(d**-0.5 if usual and subject.rounding else scale, 5)
    none = abs(scale - 1) < 1e-3 + subject.rounding
    told = f"softmax scale {'1/√d' if usual else 'none' if none else f'{scale:.5g}'}"
    cap = _cap(logit, scale) if scale > 0 and not subject.rounding else None
    if cap is not None:
        facts["softcap"] = cap
        told += f", logits capped at {cap:g}"
    if usual or (none and "n_buckets" in facts):  # T5 does not scale
        return told, ()
    how = say("the softmax scale is {scale:.5g} instead of 1/√d = {usual:.5g}", scale=scale, usual=d**-0.5)
    return told, (Difference("softmax_scale", how),)


def _of_products(subject: Subject) -> Callable[[float], float]:
    """The logit that a product of query and key becomes, above one of 0.

    Only the last key, at the query's own position, has a product, so that a rotation does not show.
    """
    keys = min(subject.width, FEW, subject.reach + 1)
    q, k = torch.zeros(1, subject.n_heads, 1, subject.width), torch.zeros(1, subject.n_kv_heads, keys, subject.width)
    q[..., 0] = 1.0

    def over_the_one_before(product: float) -> float:
        k[:, :, -1, 0] = product
        log = weights(subject, keys - 1, q, k)[0].log()
        return float(log[-1] - log[-2])

    nothing = over_the_one_before(0.0)
    return lambda product: over_the_one_before(product) - nothing


def _cap(logit: Callable[[float], float], scale: float) -> float | None:
    """The c of c·tanh(logit/c), as in Gemma 2; None where large logits stay what they are."""
    found = logit(FAR / scale)
    if not 0 < found < FAR * (1 - 1e-3):
        return None
    low, high = found, CAPPED
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(FAR / middle) < found else (low, middle)
    return float(f"{high:.4g}") if high < CAPPED * 0.99 else None
