"""Rotary positions for some heads only: the first ones turn, the others see no position.

Legend: b batch, h heads, t tokens, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.tensors import into

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class FirstHeadsRoPE(RoPE):
    """RoPE of heads 0 … turning_heads-1 of queries and of keys; all others pass through. Takes RoPE's arguments besides.

    Where query heads share a key head that turns and do not all turn themselves, a shift of all positions changes the
    result: the encoding does not declare shift invariance.

    The speech decoder of Qwen2.5-Omni turns one head (its code says so: an oversight of training, kept for the weights).
    Raises ValueError unless turning_heads is a whole number from 1.
    """

    def __init__(self, d_head: int, turning_heads: int, **options: Any) -> None:
        super().__init__(d_head, **options)
        checks.whole(turning_heads=turning_heads)
        self._configure(**self.configuration, turning_heads=turning_heads)
        self.turning_heads = turning_heads
        self.traits = self.traits - {"shift_invariant"}

    def structure(self) -> Rotation:
        return super().structure()._replace(both=None)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if side not in self.sides:
            return super().rotate(x, at, side, out)
        first, others = x[:, : self.turning_heads], x[:, self.turning_heads :]
        if out is None:
            return torch.cat([super().rotate(first, at, side), others], dim=1)
        super().rotate(first, at, side, out[:, : self.turning_heads])
        into(others, out[:, self.turning_heads :])
        return out

    def heads(self, start: int, stop: int) -> PositionalEncoding:
        """The encoding of heads start … stop-1 alone."""
        left = min(self.turning_heads, stop) - start
        if left < 1:
            return NoPE()
        arguments = {name: value for name, value in self.configuration.items() if value is not None}
        return FirstHeadsRoPE(**arguments | {"turning_heads": left})
