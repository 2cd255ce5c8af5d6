"""Laws of the seam attention: what a query reads depends on itself and on the keys that it may see, with their positions.

Legend: b batch, h query heads, g key heads, i query, j key, d channels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.arrangements import causal
from posenc.checking.engine import Measured, apart, compared, law
from posenc.checking.errors import Declined
from posenc.checking.subject import Subject, arange


@law("attention", bug="future", must_run=True, inputs=({"length": 8, "queries": 8}, {"length": 8, "queries": 3}), length=2)
def later_tokens_do_not_matter(subject: Subject, length: int, queries: int) -> Measured:
    """Keys and values after a query do not change what it reads."""
    causal(subject)
    queries = min(queries, length)
    q, k, v = subject.heads(1, length, length)
    at = arange(0, length)
    out = subject(q[:, :, -queries:], k, v, at[:, -queries:], at)
    k, v = k.clone(), v.clone()
    k[:, :, -1], v[:, :, -1] = 5.0, -7.0
    changed = subject(q[:, :, -queries:], k, v, at[:, -queries:], at)
    if queries == 1:
        return Measured(0.0, 0.0, "the last query alone has no future")
    return apart(changed[:, :, :-1], out[:, :, :-1], 0.0, "before and after the last key and value were changed")


@law("attention", bug="softmax axis", must_run=True, inputs=({"length": 6},))
def weights_sum_to_one(subject: Subject, length: int) -> Measured:
    """Values of ones give ones, or what the sink of each head leaves of them."""
    if "averages_values" not in subject.traits:
        raise Declined("not declared", "the output may hold more than averages of values")
    q, k, v = subject.heads(2, length, length)
    at = arange(0, length, 2)
    out = subject(q, k, torch.ones_like(v), at, at)
    if bool((out < 1).any()) and sinks(subject) is not None:
        return Measured(0.0, 0.0, "the weights and the share of a sink")
    return apart(out, torch.ones_like(out), 1e-5 + subject.rounding, "the sum of the weights and 1")


def sinks(subject: Subject) -> Tensor | None:
    """The logit of each head that takes a share of the weights and has no value [h]; None where there is none.

    What is missing from the weights is then the same multiple of a key of zeros' weight, whatever other keys there are.
    """
    found = []
    for length in (1, 2, 6):
        q, k, v = subject.heads(1, 1, length)
        at = arange(0, length)
        k[:, :, -1] = 0.0
        last = torch.zeros_like(v)
        last[:, :, -1] = 1.0
        whole, own = (subject(q, k, part, at[:, -1:], at)[0, :, 0, 0].double() for part in (torch.ones_like(v), last))
        found.append((1 - whole) / own)
    ratios = torch.stack(found).detach()
    alike = ((ratios - ratios[0]).abs() <= (1e-2 + 20 * subject.rounding) * ratios[0].abs()).all()
    return ratios[0].log() if bool((ratios > 1e-5).all()) and bool(alike) else None


@law("attention", bug="heads", must_run=True, inputs=({"length": 6},))
def heads_read_their_own_keys(subject: Subject, length: int) -> Measured:
    """Other values in one key head change the query heads of its group, the contiguous ones, and no others."""
    q, k, v = subject.heads(1, length, length)
    at = arange(0, length)
    out, group = subject(q, k, v, at, at), subject.n_heads // subject.n_kv_heads
    wrong = 0
    for g in range(subject.n_kv_heads):
        other = v.clone()
        other[:, g] += 1.0
        moved = (subject(q, k, other, at, at) - out).abs().amax((0, 2, 3)) > 0.5
        wrong += int((moved != (torch.arange(subject.n_heads) // group == g)).sum())
    return Measured(float(wrong), 0.0, "query heads that read another key head than that of their group")


def _documents(subject: Subject) -> None:
    if not subject.documents:
        raise Declined("not declared", "the callable has no arguments q_documents and k_documents")


@law("attention", bug="packing", inputs=({"first": 5, "second": 4},))
def packed_equals_separate(subject: Subject, first: int, second: int) -> Measured:
    """Documents in one row, each counted from 0, read what they read alone."""
    _documents(subject)
    q, k, v = subject.heads(1, first + second, first + second)
    at = torch.cat([arange(0, first), arange(0, second)], 1)
    documents = torch.tensor([[0] * first + [1] * second])
    packed = subject(q, k, v, at, at, q_documents=documents, k_documents=documents)
    separate = []
    for part in (slice(0, first), slice(first, None)):
        own_ids = documents[:, part]
        heads = [x[:, :, part] for x in (q, k, v)]
        separate.append(subject(*heads, at[:, part], at[:, part], q_documents=own_ids, k_documents=own_ids))
    return compared(subject, packed, torch.cat(separate, 2), first + second, f"documents of {first} and {second} tokens")


@law("attention", bug="padding", inputs=({"length": 5, "pad": 3}, {"length": 1, "pad": 2}))
def padded_equals_unpadded(subject: Subject, length: int, pad: int) -> Measured:
    """Padding on either side changes nothing for real tokens, and padded queries stay finite."""
    _documents(subject)
    size = length + 2 * pad
    q, k, v = subject.heads(1, size, size)
    at = torch.zeros(1, size, dtype=torch.long)
    at[:, pad : pad + length] = arange(0, length)
    documents = torch.full((1, size), -1)
    documents[:, pad : pad + length] = 0
    padded = subject(q, k, v, at, at, q_documents=documents, k_documents=documents)
    real = slice(pad, pad + length)
    ids = documents[:, real]
    unpadded = subject(*[x[:, :, real] for x in (q, k, v)], at[:, real], at[:, real], q_documents=ids, k_documents=ids)
    if not bool(torch.isfinite(padded).all()):
        return apart(padded, torch.zeros_like(padded), 0.0, "padded queries")
    return compared(subject, padded[:, :, real], unpadded, length, f"{pad} padded tokens on either side")
