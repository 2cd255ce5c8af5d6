"""Laws of the seam rotate alone: what a rotation is."""

from __future__ import annotations

import torch

from posenc.checking.engine import Measured, apart, budget, law, within_reach
from posenc.checking.errors import Declined
from posenc.checking.subject import Subject, arange

EPS = float(torch.finfo(torch.float32).eps)


@law("rotate", bug="cos of cos", must_run=True, inputs=({"length": 1},))
def position_0_does_not_turn(subject: Subject, length: int) -> Measured:
    """A token at position 0 keeps its direction; a factor of all channels, or of those that turn, is allowed, as YaRN's."""
    x = subject.tokens(length, 1)
    out = subject.rows(x, arange(0, 1, length))
    turns = (subject.rows(x, arange(1, 1, length)) != out).any(0)[0]
    turns = turns if bool(turns.any()) else torch.ones_like(turns)
    scale = float((out.double() * x)[..., turns].sum() / x.double().square()[..., turns].sum())
    scaled = turns | ((out - scale * x).abs() < (out - x).abs())  # slow pairs may not show that they turn
    allowed = (64 * EPS + subject.rounding) * float(x.abs().max())
    return apart(out, torch.where(scaled, scale * x, x), allowed, f"position 0 and the token times {scale:.4g}")


@law(
    "rotate",
    bug="not relative",
    must_run=True,
    inputs=tuple({"shift": n, "distance": d} for n in (1, 37, 1000, 4099, 30_011, 131_071) for d in (1, 17)),
    shift=1,
    distance=0,
)
def shift_invariance(subject: Subject, shift: int, distance: int) -> Measured:
    """Query at m and key at n have the product that they have at m + s and n + s.

    Angles in float32 round by half a unit of their last place, on both sides: 4 such errors of the largest products are
    allowed.
    """
    if "shift_invariant" not in subject.traits:
        raise Declined("not declared", "shift invariance is not declared")
    within_reach(subject, shift + distance)
    x = subject.tokens(2, 1)

    def product(start: int) -> torch.Tensor:
        q = subject.rows(x[:1], arange(start + distance, 1))
        k = subject.key_side.rows(x[1:], arange(start, 1))
        return (q.double() * k.double()).sum()

    largest = float(x[0].abs().max() * x[1].abs().max())
    allowed = 4 * EPS * largest * (32 + 4 * (shift + distance)) + subject.rounding * float(x[0].norm() * x[1].norm())
    return apart(product(shift), product(0), allowed, f"products at distance {distance}, from position 0 and from {shift}")


@law("rotate", bug="cos of cos", must_run=True, inputs=tuple({"position": n} for n in (1, 5, 100, 3001, 70_001)))
def norm_preservation(subject: Subject, position: int) -> Measured:
    """A token has the same length at every position; a constant factor is allowed."""
    if "norm_preserving" not in subject.traits:
        raise Declined("not declared", "norm preservation is not declared")
    within_reach(subject, position)
    x = subject.tokens(4, 1)
    at_zero, there = (subject.rows(x, arange(n, 1, 4)).double().norm(dim=-1) for n in (0, position))
    allowed = (64 * EPS + subject.rounding) * float(at_zero.max())
    return apart(there, at_zero, allowed, f"lengths at position {position} and at 0")


@law("rotate", bug="wrong axis", must_run=True, inputs=({"length": 3, "start": 4},), start=0)
def heads_turn_alike(subject: Subject, length: int, start: int) -> Measured:
    """The same token in all heads gives the same in all heads."""
    if "heads_alike" not in subject.traits:
        raise Declined("not declared", "heads may turn differently")
    token = subject.tokens(1, length)[..., : subject.width]
    out = subject.rows(token.repeat(1, 1, subject.n_heads), arange(start, length)).unflatten(-1, (subject.n_heads, -1))
    allowed = budget(subject, out, start + length)
    return apart(out, out[:, :, :1].expand_as(out), allowed, "the heads")
