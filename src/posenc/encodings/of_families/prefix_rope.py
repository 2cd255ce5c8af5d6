"""Rotary positions for patches, learned angles for the tokens before them.

    patch       turns by position, as RoPE        prefix token k   turns by angle_k, a parameter, whatever the position

Legend: b batch, t tokens, n pairs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.rope import RoPE
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_accepted, full_precision


class PrefixRoPE(RoPE):
    """RoPE over two axes or more, with learned angles for prefix tokens such as CLS. Takes RoPE's arguments besides.

    prefix  how many prefix tokens there are; the k-th stands at coordinates (-1, k, …), as Positions.grid places it

    Parameter: angles [prefix, n]. MLCD (An et al. 2024) in its released code, one class token.
    Raises ValueError for one axis, where -1 is a position like any other, for no prefix, and for a prefix token that there
    is not (a device assert off the CPU).
    """

    learned_tables = True

    def __init__(self, d_head: int, prefix: int = 1, **options: Any) -> None:
        super().__init__(d_head, **options)
        checks.whole(prefix=prefix)
        if self.axes < 2:
            raise ValueError("axes: expected at least 2, on one axis a prefix token cannot be told from position -1")
        self._configure(**self.configuration, prefix=prefix)
        self.traits = self.traits - {"shift_invariant"}
        self.prefix = prefix
        self.angles = nn.Parameter(torch.randn(prefix, len(self.frequencies)))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each, times the frequencies' cos_sin_scale."""
        cos, sin = super().tables(at, dtype)
        before, number = at.coords[..., 0] < 0, at.coords[..., 1]
        inside = ~before | ((at.coords[..., 0] == -1) & (number >= 0) & (number < self.prefix))
        message = f"PrefixRoPE: a token at {{}} is before the grid and none of {self.prefix} prefix tokens at (-1, 0) …"
        check_accepted(at.coords, inside, message)
        with full_precision(self.angles):
            angle = self.angles[number.long().clamp(0, self.prefix - 1)].double()
            scale = self.frequencies.cos_sin_scale
            learned_cos, learned_sin = (
                (angle.cos() * scale).to(dtype),
                (angle.sin() * (-scale if self.reverse else scale)).to(dtype),
            )
        return torch.where(before[..., None], learned_cos, cos), torch.where(before[..., None], learned_sin, sin)
