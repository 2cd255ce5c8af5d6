"""Rotary positions: queries and keys turn with their position, so their product sees only the difference.

    R(p) turns pair i by p·ω_i,  ω_i = base^(-2i/d):   (x, y) -> (x cos - y sin, y cos + x sin)
    (R(m) q)·(R(n) k) = q·R(n-m) k

Su et al. 2021, "RoFormer", section 3.2.
Legend: b batch, h heads, t tokens, d d_head, n pairs.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side, usual_scale
from posenc.frequencies import ByLength, Frequencies, layouts, rotary
from posenc.frequencies.layouts import Layout, Planes
from posenc.frequencies.lengths import tokens_served
from posenc.kernels.rotation import few_tokens, rotate, rotate_both
from posenc.kernels.sin_cos import sin_cos
from posenc.positions import Positions
from posenc.structure import QUERY_AND_KEY, Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.checks import shown
from posenc.support.tensors import (
    check_coords,
    check_pair,
    check_tokens,
    check_width,
    floating,
    into,
    readable,
    tables_at,
    turns,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class RoPE(PositionalEncoding):
    """Rotates queries and keys. No parameters; defined for any real position.

    d_head       channels of a head
    base         the slowest pair turns once in about 2π·base positions; 10 000 if left out
    layout       which channels make a pair: "interleaved" (the paper, GPT-J) or "half" (LLaMA on the hub, GPT-NeoX)
    rotary_dim   channels that turn; the rest passes through. Even; all if left out
    trailing     the last rotary_dim channels turn instead of the first ones (multi-head latent attention)
    reverse      turn the other way, R(-p), as nanochat does; the scores of a model trained so differ in sign of sin only
    axes         coordinates per token; each turns rotary_dim/axes channels, first axis first
    frequencies  other frequencies than base^(-2i/d), with their magnitudes and axes: see posenc.frequencies; or a family
                 of them by length, of which `length` picks one and `at_length` another
    length       picks one of a family of frequencies: tokens of the request
    returns      the layout that rotated tensors are returned in, `layout` if left out: DeepSeek-V3's code pairs
                 neighbours and returns halves. Scores are the same; cached keys are not
    sides        what turns. "value" turns like keys, and "output" turns back by the query's position

    Raises ValueError for an odd or too large rotary_dim, an unknown layout or side, and sizes given twice.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        base: float | None = None,
        layout: Layout = "interleaved",
        rotary_dim: int | None = None,
        trailing: bool = False,
        reverse: bool = False,
        axes: int | None = None,
        frequencies: ByLength | None = None,
        length: int = 1,
        returns: Layout | None = None,
        sides: tuple[Side, ...] = ("query", "key"),
    ) -> None:
        if frequencies is None:
            if rotary_dim is None:
                checks.even(d_head=d_head)
            base = 10000.0 if base is None else base
            rotary_dim, axes = d_head if rotary_dim is None else rotary_dim, 1 if axes is None else axes
        elif (base, rotary_dim, axes) != (None, None, None):
            raise ValueError("RoPE: frequencies bring their own base, rotary_dim and axes; give either them or frequencies")
        super().__init__(
            d_head=d_head,
            base=base,
            layout=layout,
            rotary_dim=rotary_dim,
            trailing=trailing,
            reverse=reverse,
            axes=axes,
            frequencies=frequencies,
            length=length,
            returns=returns,
            sides=sides,
        )
        layouts.check(layout)
        layouts.check(returns or layout)
        for side in sides:
            turns(side)
        if frequencies is None:
            frequencies = _shared_evenly(d_head, rotary_dim, axes, base)  # type: ignore[arg-type]
        self.frequencies = frequencies.at_length(length)
        if not isinstance(self.frequencies, Frequencies):
            raise TypeError(f"frequencies: expected posenc.frequencies, got {shown(frequencies)}")
        self.made_for = tokens_served(frequencies, length, self.frequencies)
        self.rotary_dim, self.axes = 2 * len(self.frequencies), self.frequencies.n_axes
        if self.rotary_dim > d_head:
            if self.rotary_dim == d_head + 1:  # frequencies of the whole head, which a caller made of its width
                checks.even(d_head=d_head)
            raise ValueError(f"frequencies: {len(self.frequencies)} pairs need {self.rotary_dim} channels, d_head={d_head}")
        self.d_head, self.layout, self.returns, self.trailing = d_head, layout, returns or layout, trailing
        self.start = d_head - self.rotary_dim if trailing else 0
        self.reverse, self.sides = reverse, frozenset(sides)
        own = type(self).tables is RoPE.tables and type(self).rotate is RoPE.rotate  # no subclass says cos and sin
        self._computed_within = own and not reverse and self.made_for is None and few_tokens.serves(self.frequencies)
        self._turned, self._mixed = (
            (Planes(pairs, self.start, self.start + self.rotary_dim),) if sides else () for pairs in (self.returns, layout)
        )
        if self.frequencies.cos_sin_scale != 1:
            self.traits = self.traits - {"norm_preserving"}
        if ("query" in sides) != ("key" in sides) or ("value" in sides) != ("output" in sides):  # one keeps its position
            self.traits = self.traits - {"shift_invariant"}

    def structure(self) -> Rotation:
        return Rotation(self._turned, self._mixed, self.sides, self._rotate_both)

    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        """The same positions with cos and sin of their angles; without, where the rotation of few tokens computes them
        within, which takes less time than to look at tables. A gradient is recorded with tables, and positions with tables
        of others get these too."""
        usual = type(at) is Positions and type(dtype) is torch.dtype and not torch.is_grad_enabled()
        if usual and not at.tables and self._computed_within and "tables" not in self.__dict__ and few_tokens.within(at):
            return at
        return super().prepare(at, dtype)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each, times the frequencies' cos_sin_scale."""
        floating(dtype)
        check_coords(self, at)
        if self.made_for is not None:
            _warn_beyond(self, at, self.made_for)
        sin, cos = sin_cos(at, self.frequencies, dtype)
        if (scale := self.frequencies.cos_sin_scale) != 1:
            cos, sin = cos * scale, sin * scale
        return cos, -sin if self.reverse else sin

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if side not in self.sides:
            turns(side)
            return into(x, out)
        if out is None and side != "output" and not at.tables and (turned := self._of_few(at, x)) is not None:
            return turned[0]
        check_width(self, "d_head", x.shape[-1], self.d_head, "v" if side == "value" else "x")
        check_tokens(self, x, at, axis=2)
        cos, sin = tables_at(self, at, x.dtype)
        return rotate(x, cos, sin, self.layout, self.returns, start=self.start, back=side == "output", out=out)

    def _rotate_both(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> tuple[Tensor, Tensor]:
        """Queries and keys by one call of the kernel, where their positions are the same."""
        if at_q is not at_k or not self.sides >= QUERY_AND_KEY:
            return self.rotate(q, at_q, "query"), self.rotate(k, at_k, "key")
        if not at_q.tables and (turned := self._of_few(at_q, q, k)) is not None:
            return turned[0], turned[1]
        check_pair(self, q, k, at_q)
        cos, sin = tables_at(self, at_q, q.dtype)
        return rotate_both(q, k, cos, sin, self.layout, self.returns, start=self.start)

    def _of_few(self, at: Positions, *tokens: Tensor) -> list[Tensor] | None:
        """Few tokens turned with cos and sin computed within; None for those that the kernel does not take."""
        if not self._computed_within or self.__dict__.keys() & {"tables", "rotate"} or tokens[0].shape[-1] != self.d_head:
            return None
        return few_tokens.turned_at(tokens, at, self.frequencies, self.start, self.layout == "half", self.returns == "half")

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) * self.frequencies.softmax_scale

    def frequencies_now(self) -> Frequencies:
        """The frequencies that it turns by, as numbers: `frequencies` unless parameters change them."""
        return self.frequencies

    def at_length(self, n: int) -> RoPE:
        """The encoding for a request of n tokens: a new one if the frequencies depend on length, else this one."""
        frequencies = self.configuration["frequencies"]
        if frequencies is None or isinstance(frequencies, Frequencies):
            return self
        return type(self)(**{**self.configuration, "length": n})


_warned: set[str] = set()  # of encodings, as warnings keeps what it has shown


def _warn_beyond(encoding: RoPE, at: Positions, served: int) -> None:
    """Warns once of each encoding of a position that belongs to a longer request, in eager code on the CPU."""
    if not readable(at.coords) or not at.coords.numel() or encoding.identity in _warned:
        return
    if (largest := int(at.coords.max())) >= served:
        _warned.add(encoding.identity)
        family = encoding.configuration["frequencies"]
        warnings.warn(
            f"{type(encoding).__name__} with {type(family).__name__} frequencies: position {largest} is beyond the "
            f"{served} tokens that it was made for; its original length is {family.trained_length}. Frequencies depend on "
            f"the length of the request: take encoding.at_length(n), of all its n tokens, here at least {largest + 1}",
            stacklevel=2,
        )


def _shared_evenly(d_head: int, rotary_dim: int, axes: int, base: float) -> Frequencies:
    """base^(-2i/d) for each axis in turn, d = rotary_dim/axes."""
    if rotary_dim % 2 or rotary_dim > d_head:
        raise ValueError(f"rotary_dim: expected an even number up to d_head={d_head}, got {rotary_dim}")
    if (rotary_dim // 2) % axes:
        raise ValueError(f"axes: {rotary_dim // 2} pairs cannot be shared evenly by {axes} axes")
    per_axis = rotary(rotary_dim // axes, base)
    if axes == 1:
        return per_axis
    axis_of_pair = tuple(axis for axis in range(axes) for _ in per_axis)
    return replace(
        per_axis,
        values=per_axis.values * axes,
        axes=axis_of_pair,
        values_from=f"{per_axis.values_from} for each of {axes} axes",
    )


@checked
def rotation_matrix(
    position: float, d_head: int, base: float = 10000.0, layout: Layout = "interleaved"
) -> Float[Tensor, "d d"]:
    """R(p) as an fp64 matrix acting on columns, R(p) q; on rows, q R(p)ᵀ.

    Both notations of the relative score: q̂·k̂ = qᵀ R(j-i) k for columns = q R(i-j) kᵀ for rows whose R is the transpose.
    """
    encoding = RoPE(d_head, base=base, layout=layout)
    at = Positions.at(torch.full((1, d_head), position, dtype=torch.float64))
    return encoding.rotate(torch.eye(d_head, dtype=torch.float64)[None, None], at, "query")[0, 0].T
