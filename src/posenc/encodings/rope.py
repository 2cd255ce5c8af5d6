"""Rotary positions: queries and keys turn with their position, so their product sees only the difference.

    R(p) turns pair i by p·ω_i,  ω_i = base^(-2i/d):   (x, y) -> (x cos - y sin, y cos + x sin)
    (R(m) q)·(R(n) k) = q·R(n-m) k

Su et al. 2021, "RoFormer", section 3.2.
Legend: b batch, h heads, t tokens, d d_head, n pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies, layouts
from posenc.encoding import PositionalEncoding, Side, Site, check_tokens, check_width, turns
from posenc.layouts import Layout
from posenc.phasors import phasors
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float


class RoPE(PositionalEncoding):
    """Rotates queries and keys. No parameters; defined for any real position.

    d_head      channels of a head
    base        the slowest pair turns once in about 2π·base positions
    layout      which channels make a pair: "interleaved" (the paper, GPT-J) or "half" (LLaMA on the hub, GPT-NeoX)
    rotary_dim  channels that turn, the first ones; the rest passes through. Even; all if left out
    reverse     turn the other way, R(-p), as nanochat does; the scores of a model trained so differ in sign of sin only
    axes        coordinates per token; each turns rotary_dim/axes channels, first axis first

    Raises ValueError for an odd or too large rotary_dim, and for an unknown layout.
    """

    sites = Site.ROTATE

    def __init__(
        self, d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved", rotary_dim: int | None = None,
        reverse: bool = False, axes: int = 1,
    ) -> None:  # fmt: skip
        rotary_dim = d_head if rotary_dim is None else rotary_dim
        super().__init__(d_head=d_head, base=base, layout=layout, rotary_dim=rotary_dim, reverse=reverse, axes=axes)
        if rotary_dim % 2 or rotary_dim > d_head:
            raise ValueError(f"rotary_dim: expected an even number up to d_head={d_head}, got {rotary_dim}")
        if (rotary_dim // 2) % axes:
            raise ValueError(f"axes: {rotary_dim // 2} pairs cannot be shared evenly by {axes} axes")
        layouts.check(layout)
        self.d_head, self.layout, self.reverse, self.coordinate_axes = d_head, layout, reverse, axes  # type: ignore[misc]
        self.frequencies = (frequencies.rotary(rotary_dim // axes, base),) * axes

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each."""
        self.check_coords(at)
        sin, cos = phasors(at, self.frequencies, dtype).unbind(-1)
        return cos.contiguous(), (-sin if self.reverse else sin.contiguous())

    def rotate(self, x: Float[Tensor, "b h t d"], at: Positions, side: Side) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return x
        check_width(self, "d_head", x.shape[-1], self.d_head)
        check_tokens(self, x, at, axis=2)
        cos, sin = self.tables_at(at, x.dtype)
        return layouts.turn(x, cos[:, None], sin[:, None], self.layout)


def rotation_matrix(
    position: float, d_head: int, base: float = 10000.0, layout: Layout = "interleaved"
) -> Float[Tensor, "d d"]:
    """R(p) as an fp64 matrix acting on columns, R(p) q; on rows, q R(p)ᵀ.

    Both notations of the relative score: q̂·k̂ = qᵀ R(j-i) k for columns = q R(i-j) kᵀ for rows whose R is the transpose.
    """
    encoding = RoPE(d_head, base=base, layout=layout)
    at = Positions.at(torch.full((1, d_head), position, dtype=torch.float64))
    return encoding.rotate(torch.eye(d_head, dtype=torch.float64)[None, None], at, "query")[0, 0].T
