"""Laws of the seam bias: the bias of a pair depends on the two positions only.

Biases count up to a constant for each query, which a softmax does not see; -inf (or below -10^4) hides a key.

Legend: h heads, i query, j key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.engine import Measured, apart, budget, law, within_reach, worst
from posenc.checking.errors import Declined
from posenc.checking.subject import Subject, arange, relative_to_first


def _whole(subject: Subject, length: int, start: int = 0) -> Tensor:
    at = arange(start, length)
    return subject.bias(at, at)


def _compared(subject: Subject, part: Tensor, whole: Tensor, farthest: int, what: str) -> Measured:
    mine, theirs = relative_to_first(part), relative_to_first(whole)
    return apart(mine, theirs, budget(subject, theirs, farthest), what)


@law(
    "bias",
    bug="bias cache",
    must_run=True,
    inputs=({"queries": 1, "keys": 9}, {"queries": 4, "keys": 12}, {"queries": 3, "keys": 9}, {"queries": 1, "keys": 257}),
    keys=2,
)
def decode_equals_prefill(subject: Subject, queries: int, keys: int) -> Measured:
    """The last queries over all keys, as in decoding, have the last rows of the whole."""
    queries = min(queries, keys)
    within_reach(subject, keys)
    part = subject.bias(arange(keys - queries, queries), arange(0, keys))
    return _compared(subject, part, _whole(subject, keys)[:, :, -queries:], keys, f"{queries} queries over {keys} keys")


@law("bias", bug="bias cache", inputs=({"length": 12, "first": 5},))
def blocks_of_keys_equal_the_whole(subject: Subject, length: int, first: int) -> Measured:
    """Queries over a part of the keys have that part of the whole."""
    first = min(first, length - 1)
    whole = _whole(subject, length)[..., first:]
    return _compared(subject, subject.bias(arange(0, length), arange(first, length - first)), whole, length, "some keys")


@law("bias", bug="position ignored", inputs=({"length": 9},), length=2)
def storage_order_does_not_matter(subject: Subject, length: int) -> Measured:
    """Keys and queries stored in another order, each with its position, have the bias in that order."""
    order = torch.arange(length).roll(1).flip(0)
    at = arange(0, length)
    mixed = subject.bias(at[:, order], at[:, order])
    whole = _whole(subject, length)[:, :, order][..., order]
    return _compared(subject, mixed, whole, length, f"order {order.tolist()}")


@law("bias", bug="position ignored", inputs=({"batch": 3, "length": 5, "start": 7}, {"batch": 2, "length": 2, "start": 1}))
def rows_have_their_own_positions(subject: Subject, batch: int, length: int, start: int) -> Measured:
    """Rows of a batch at different positions, with one gap, equal each row alone."""
    at = torch.cat([torch.cat([arange(start * b, 1), arange(start * b + 1 + b, length)], 1) for b in range(batch)])
    together = subject.bias(at, at)
    alone = torch.cat([subject.bias(at[b : b + 1], at[b : b + 1]) for b in range(batch)])
    if together.shape != alone.shape:
        return apart(together, alone, 0.0, "rows of a batch and alone")
    return _compared(subject, together, alone, start * batch + length, "rows of a batch and alone")


@law("bias", bug="position ignored", inputs=({"shift": 37}, {"shift": 3001}))
def shift_invariance(subject: Subject, shift: int) -> Measured:
    """Moving all positions by the same amount changes nothing."""
    if "shift_invariant" not in subject.traits:
        raise Declined("not declared", "shift invariance is not declared")
    length = 9
    within_reach(subject, shift + length)
    return _compared(
        subject, _whole(subject, length, shift), _whole(subject, length), shift + length, f"shifted by {shift}"
    )


@law("bias", bug="length state", must_run=True, inputs=({"length": 6, "long": 513}, {"length": 511, "long": 513}), long=2)
def short_calls_equal_long_calls(subject: Subject, length: int, long: int) -> Measured:
    """A short sequence has the first rows and columns of a long one; and again, after it."""
    long = max(long, length)
    within_reach(subject, long)
    before = _whole(subject, length)
    whole = _whole(subject, long)[:, :, :length, :length]
    after = _whole(subject, length)
    return worst(
        _compared(subject, after, before, long, f"before and after a call of {long} tokens"),
        _compared(subject, whole, before, long, f"alone and as the beginning of {long} tokens"),
    )


@law("bias", bug="cache key", must_run=True, inputs=({"length": 6, "start": 5},))
def other_offsets_do_not_matter(subject: Subject, length: int, start: int) -> Measured:
    """Two calls of one shape at different query positions do not see each other's bias."""
    keys = arange(0, length + start)
    within_reach(subject, length + start)
    whole = subject.fresh().bias(keys, keys)
    first, second = subject.bias(arange(0, length), keys), subject.bias(arange(start, length), keys)
    return worst(
        _compared(subject, first, whole[:, :, :length], length + start, "queries from 0"),
        _compared(subject, second, whole[:, :, start:], length + start, f"queries from {start}, after queries from 0"),
    )


@law("bias", bug="bias precision", inputs=({"distance": 300}, {"distance": 2049}, {"distance": 9001}))
def far_distances_follow_the_line(subject: Subject, distance: int) -> Measured:
    """Where the bias is a straight line over near keys, it goes on as that line."""
    within_reach(subject, distance)
    near = subject.bias(torch.tensor([[64]]), arange(0, 65))[0, :, 0].flip(1)
    near = (near - near[:, :1]).detach()
    slope = near[:, -1] / 64
    if not bool(slope.any()) or float((near - slope[:, None] * torch.arange(65)).abs().max()) > 1e-3 * float(
        near.abs().max()
    ):
        raise Declined("not applicable", "the bias is no straight line over the distance")
    far = subject.bias(torch.tensor([[distance]]), torch.tensor([[0, distance - 1, distance]]))[0, :, 0]
    steps = torch.stack([far[:, 0] - far[:, 2], far[:, 1] - far[:, 2]], 1)
    expected = slope[:, None] * torch.tensor([distance, 1], dtype=torch.float64)
    eps = float(torch.finfo(torch.float32).eps)
    size = float(slope.abs().max()) * distance
    return apart(steps, expected, 64 * eps * size, f"bias at distances {distance} and 1")


@law("bias", bug="bias sign", inputs=({"length": 33},), length=3)
def a_straight_bias_falls_with_distance(subject: Subject, length: int) -> Measured:
    """Where the bias is a straight line over the keys before the query, nearer keys get more."""
    at = arange(0, length)
    bias = subject.bias(at, at)[0]
    row = bias[:, -1]
    if not bool(torch.isfinite(row).all()):
        raise Declined("not applicable", "keys at or before the query are hidden")
    steps = row[:, 1:] - row[:, :-1]
    if float((steps - steps[:, :1]).abs().max()) > 1e-3 * float(steps.abs().max().clamp(min=1e-30)) or not bool(
        steps.any()
    ):
        raise Declined("not applicable", "the bias is no straight line over the distance")
    return Measured(
        float((-steps[:, 0]).clamp(min=0).max()), 0.0, "how much a head gains from one key nearer to one further"
    )


@law("bias", bug="future", inputs=({"length": 7},), length=2)
def hidden_keys_are_those_after_the_query(subject: Subject, length: int) -> Measured:
    """A bias that hides keys hides those after the query and no others, for fewer queries than keys too."""
    whole = _whole(subject, length)
    if bool(torch.isfinite(whole).all()):
        raise Declined("not applicable", "it hides no keys")
    wrong = 0
    for queries in (length, 2, 1):
        q, k = arange(length - queries, queries), arange(0, length)
        hidden = ~torch.isfinite(subject.bias(q, k))
        wrong += int((hidden != (k[:, None, None] > q[:, None, :, None])).sum())
    return Measured(float(wrong), 0.0, "pairs hidden or seen wrongly")
