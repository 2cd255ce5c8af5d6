"""Laws of the seam attention: what a query reads depends on itself and on the keys that it may see, with their positions.

Legend: b batch, h query heads, g key heads, i query, j key, d channels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.engine import Measured, apart, budget, law, within_reach, worst
from posenc.checking.errors import Declined
from posenc.checking.subject import Subject, arange

SUMS = 4.0  # sums over keys round more than one product: allowed besides the budget of one term


def _compared(subject: Subject, actual: Tensor, expected: Tensor, farthest: int, what: str) -> Measured:
    return apart(actual, expected, SUMS * budget(subject, expected, farthest), what)


def _causal(subject: Subject) -> None:
    if "causal" not in subject.traits:
        raise Declined("not declared", "causal attention is not declared")


@law(
    "attention",
    bug="decode offset",
    must_run=True,
    inputs=({"length": 9, "start": 0}, {"length": 9, "start": 37}),
    start=0,
    length=2,
)
def decode_equals_prefill(subject: Subject, length: int, start: int) -> Measured:
    """Queries one by one over the keys so far give what one pass gives."""
    _causal(subject)
    within_reach(subject, start + length)
    q, k, v = subject.heads(1, length, length)
    at = arange(start, length)
    whole = subject(q, k, v, at, at)
    parts = [
        subject(q[:, :, n : n + 1], k[:, :, : n + 1], v[:, :, : n + 1], at[:, n : n + 1], at[:, : n + 1])
        for n in range(length)
    ]
    return _compared(subject, torch.cat(parts, 2), whole, start + length, "one by one and in one pass")


@law(
    "attention",
    bug="causal alignment",
    must_run=True,
    inputs=({"length": 11, "chunk": 4}, {"length": 70, "chunk": 64}),
    length=2,
)
def chunked_equals_whole(subject: Subject, length: int, chunk: int) -> Measured:
    """Chunks of queries over the keys so far give what one pass gives."""
    _causal(subject)
    within_reach(subject, length)
    q, k, v = subject.heads(1, length, length)
    at = arange(0, length)
    whole, parts = subject(q, k, v, at, at), []
    for n in range(0, length, chunk):
        end = min(n + chunk, length)
        parts.append(subject(q[:, :, n:end], k[:, :, :end], v[:, :, :end], at[:, n:end], at[:, :end]))
    return _compared(subject, torch.cat(parts, 2), whole, length, "chunks and one pass")


@law("attention", bug="future", must_run=True, inputs=({"length": 8, "queries": 8}, {"length": 8, "queries": 3}), length=2)
def later_tokens_do_not_matter(subject: Subject, length: int, queries: int) -> Measured:
    """Keys and values after a query do not change what it reads."""
    _causal(subject)
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


@law("attention", bug="position ignored", inputs=({"length": 8},), length=2)
def storage_order_does_not_matter(subject: Subject, length: int) -> Measured:
    """Keys and values stored in another order, each with its position, give the same."""
    q, k, v = subject.heads(1, length, length)
    at = arange(0, length)
    order = torch.arange(length).roll(1).flip(0)
    mixed = subject(q, k[:, :, order], v[:, :, order], at, at[:, order])
    return _compared(subject, mixed, subject(q, k, v, at, at), length, f"keys in the order {order.tolist()}")


@law("attention", bug="batch mates", inputs=({"length": 6, "far": 300}, {"length": 6, "far": 9000}))
def batch_mates_do_not_matter(subject: Subject, length: int, far: int) -> Measured:
    """A row at small positions gives the same beside a row at large ones as alone; so does the other."""
    within_reach(subject, far + length)
    q, k, v = subject.heads(2, length, length)
    at = torch.cat([arange(0, length), arange(far, length)])
    together = subject(q, k, v, at, at)
    alone = torch.cat([subject(q[b : b + 1], k[b : b + 1], v[b : b + 1], at[b : b + 1], at[b : b + 1]) for b in range(2)])
    return _compared(subject, together, alone, far + length, "two rows together and each alone")


@law("attention", bug="position ignored", inputs=({"shift": 37}, {"shift": 3001}))
def shift_invariance(subject: Subject, shift: int) -> Measured:
    """Moving all positions by the same amount changes nothing."""
    if "shift_invariant" not in subject.traits:
        raise Declined("not declared", "shift invariance is not declared")
    within_reach(subject, shift + 9)
    q, k, v = subject.heads(1, 9, 9)
    at = arange(0, 9)
    out = subject(q, k, v, at, at)
    return _compared(subject, subject(q, k, v, at + shift, at + shift), out, shift + 9, f"shifted by {shift}")


@law("attention", bug="softmax axis", must_run=True, inputs=({"length": 6},))
def weights_sum_to_one(subject: Subject, length: int) -> Measured:
    """Values of ones give ones."""
    if "averages_values" not in subject.traits:
        raise Declined("not declared", "the output may hold more than averages of values")
    q, k, v = subject.heads(2, length, length)
    at = arange(0, length, 2)
    out = subject(q, k, torch.ones_like(v), at, at)
    return apart(out, torch.ones_like(out), 1e-5, "the sum of the weights and 1")


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


@law("attention", bug="length state", must_run=True, inputs=({"length": 6, "long": 700},), long=2)
def short_calls_equal_long_calls(subject: Subject, length: int, long: int) -> Measured:
    """The first queries of a long pass give what they give alone; and alone again, after it."""
    _causal(subject)
    long = max(long, length)
    within_reach(subject, long)
    q, k, v = subject.heads(1, long, long)
    short = [one[:, :, :length] for one in (q, k, v)]
    at = arange(0, length)
    before = subject(*short, at, at)
    whole = subject(q, k, v, arange(0, long), arange(0, long))[:, :, :length]
    after = subject(*short, at, at)
    return worst(
        _compared(subject, after, before, length, f"before and after a pass of {long} tokens"),
        _compared(subject, whole, before, length, f"alone and as the beginning of {long} tokens"),
    )


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
    alone = []
    for part in (slice(0, first), slice(first, None)):
        mine = documents[:, part]
        one = [x[:, :, part] for x in (q, k, v)]
        alone.append(subject(*one, at[:, part], at[:, part], q_documents=mine, k_documents=mine))
    return _compared(subject, packed, torch.cat(alone, 2), first + second, f"documents of {first} and {second} tokens")


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
    mine = documents[:, real]
    alone = subject(*[x[:, :, real] for x in (q, k, v)], at[:, real], at[:, real], q_documents=mine, k_documents=mine)
    if not bool(torch.isfinite(padded).all()):
        return apart(padded, torch.zeros_like(padded), 0.0, "padded queries")
    return _compared(subject, padded[:, :, real], alone, length, f"{pad} padded tokens on either side")
