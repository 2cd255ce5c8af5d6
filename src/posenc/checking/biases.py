"""Laws of the seam bias: the bias of a pair depends on the two positions only.

Biases count up to a constant for each query, which a softmax does not see; -inf (or below -10^4) hides a key.

Legend: h heads, i query, j key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.engine import Measured, apart, compared, law, within_reach
from posenc.checking.errors import NotApplicable
from posenc.checking.subject import Subject, arange


def _whole(subject: Subject, length: int, start: int = 0) -> Tensor:
    at = arange(start, length)
    return subject.bias(at, at)


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
    return compared(subject, part, _whole(subject, keys)[:, :, -queries:], keys, f"{queries} queries over {keys} keys")


@law("bias", bug="bias cache", inputs=({"length": 12, "first": 5},))
def blocks_of_keys_equal_the_whole(subject: Subject, length: int, first: int) -> Measured:
    """Queries over a part of the keys have that part of the whole."""
    first = min(first, length - 1)
    whole = _whole(subject, length)[..., first:]
    return compared(subject, subject.bias(arange(0, length), arange(first, length - first)), whole, length, "some keys")


@law("bias", bug="bias precision", inputs=({"distance": 300}, {"distance": 2049}, {"distance": 9001}))
def far_distances_follow_the_line(subject: Subject, distance: int) -> Measured:
    """Where the bias is a straight line over near keys, it goes on as that line."""
    within_reach(subject, distance)
    near = subject.bias(torch.tensor([[64]]), arange(0, 65))[0, :, 0].flip(1)
    if not bool(torch.isfinite(near).all()):
        raise NotApplicable("keys within distance 64 are hidden")
    near = (near - near[:, :1]).detach()
    slope = near[:, -1] / 64
    off = (1e-3 + subject.rounding) * float(near.abs().max())
    if not bool(slope.any()) or float((near - slope[:, None] * torch.arange(65)).abs().max()) > off:
        raise NotApplicable("the bias is no straight line over the distance")
    far = subject.bias(torch.tensor([[distance]]), torch.tensor([[0, distance - 1, distance]]))[0, :, 0]
    if bool(far[:, 0].isinf().all()):
        raise NotApplicable(f"keys at distance {distance} are hidden")
    steps = torch.stack([far[:, 0] - far[:, 2], far[:, 1] - far[:, 2]], 1)
    expected = slope[:, None] * torch.tensor([distance, 1], dtype=torch.float64)
    eps = float(torch.finfo(torch.float32).eps)
    size = float(slope.abs().max()) * distance
    return apart(steps, expected, (64 * eps + 2 * subject.rounding) * size, f"bias at distances {distance} and 1")


@law("bias", bug="bias sign", inputs=({"length": 33},), length=3)
def a_straight_bias_falls_with_distance(subject: Subject, length: int) -> Measured:
    """Where the bias is a straight line over the keys before the query, nearer keys get more."""
    at = arange(0, length)
    bias = subject.bias(at, at)[0]
    row = bias[:, -1]
    if not bool(torch.isfinite(row).all()):
        raise NotApplicable("keys at or before the query are hidden")
    steps = row[:, 1:] - row[:, :-1]
    if float((steps - steps[:, :1]).abs().max()) > 1e-3 * float(steps.abs().max().clamp(min=1e-30)) or not bool(
        steps.any()
    ):
        raise NotApplicable("the bias is no straight line over the distance")
    return Measured(
        float((-steps[:, 0]).clamp(min=0).max()), 0.0, "how much a head gains from one key nearer to one further"
    )


@law("bias", bug="future", inputs=({"length": 7},), length=2)
def hidden_keys_are_those_after_the_query(subject: Subject, length: int) -> Measured:
    """A bias that hides keys hides those after the query and those beyond a window, for fewer queries than keys too."""
    whole = _whole(subject, length)
    if bool(torch.isfinite(whole).all()):
        raise NotApplicable("it hides no keys")
    window = torch.isfinite(whole[0, :, -1]).flip(-1).long().cumprod(-1).sum(-1)  # [h]
    window = torch.where(window > 0, window, length)[:, None, None]
    wrong = 0
    for queries in (length, 2, 1):
        q, k = arange(length - queries, queries), arange(0, length)
        distance = q[:, None, :, None] - k[:, None, None]
        hidden = ~torch.isfinite(subject.bias(q, k))
        wrong += int((hidden != ((distance < 0) | (distance >= window))).sum())
    return Measured(float(wrong), 0.0, "pairs hidden or seen wrongly")
