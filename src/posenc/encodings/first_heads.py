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

if TYPE_CHECKING:
    from jaxtyping import Float


class FirstHeadsRoPE(RoPE):
    """RoPE of heads 0 … turning_heads-1; all others pass through. Takes RoPE's arguments besides.

    The speech decoder of Qwen2.5-Omni turns one head (its code says so: an oversight of training, kept for the weights).
    Raises ValueError unless turning_heads is a whole number from 1.
    """

    def __init__(self, d_head: int, turning_heads: int, **options: Any) -> None:
        super().__init__(d_head, **options)
        if isinstance(turning_heads, bool) or not isinstance(turning_heads, int) or turning_heads < 1:
            raise ValueError(f"turning_heads: expected a whole number from 1, got {turning_heads!r}")
        self.configuration = self.configuration | {"turning_heads": turning_heads}
        self._described = f"{type(self).__name__}({self.extra_repr()})"
        self.turning_heads = turning_heads

    def rotate(self, x: Float[Tensor, "b h t d"], at: Positions, side: Side) -> Float[Tensor, "b h t d"]:
        turned = super().rotate(x[:, : self.turning_heads], at, side)
        return torch.cat([turned, x[:, self.turning_heads :]], dim=1)

    def heads(self, start: int, stop: int) -> PositionalEncoding:
        """The encoding of heads start … stop-1 alone."""
        left = min(self.turning_heads, stop) - start
        if left < 1:
            return NoPE()
        given = {name: value for name, value in self.configuration.items() if value is not None}
        return FirstHeadsRoPE(**given | {"turning_heads": left})
