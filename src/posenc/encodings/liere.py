"""LieRE: rotations in more than two channels, with a free learned generator for every axis.

    R(p) = exp(Σ_a p_a A_a) in each block of channels,   A_a = U_a - U_aᵀ,  U_a learned and strictly upper triangular

Ostmeier et al. 2024, "LieRE: Lie Rotational Positional Encodings", section 4, and the authors' code. Generators of
different axes do not commute, so that with several axes a score depends on where two patches are and not on their offset
alone, as ComRoPE's (com_rope.py) does. One axis is relative.
Legend: b batch, h heads, g generators' heads, t tokens, a axes, n blocks, s channels of a block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encodings.bases.block_rotation import BlockRotation
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class LieRE(BlockRotation):
    """Blocks of queries and keys multiplied with exp(Σ p_a A_a).

    d_head      channels of a head
    n_heads     query heads
    n_kv_heads  key heads, each with generators of its own; None: n_heads
    axes        coordinates per token, in the authors' code from 0 to 1: a grid divided by its last row and column
    block       channels of a block; None: 8, as in the paper's LieRE_8, or as many as divide the head. d_head: one block

    Parameter: generators [n_kv_heads, axes, blocks, block, block], U; what is not above the diagonal has no effect. It
    starts uniform in 0 … 2π, as in the authors' code.
    Time O(t·heads·d_head·block²) for exponentials in fp64, and O(t·heads·d_head·block) to turn.
    Raises ValueError for blocks that do not fill the head.
    """

    exact_parameters = ("generators",)

    @checked
    def __init__(
        self, d_head: int, n_heads: int, *, n_kv_heads: int | None = None, axes: int = 2, block: int | None = None
    ) -> None:
        super().__init__(d_head, n_heads, n_kv_heads=n_kv_heads, axes=axes, block=block)
        if axes > 1:
            self.traits = self.traits - {"shift_invariant"}
        self.generators = nn.Parameter(2 * math.pi * torch.rand(self.key_heads, axes, self.blocks, self.block, self.block))

    def exponents(self, coords: Float[Tensor, "b t a"]) -> Float[Tensor, "b t g n s s"]:
        upper = self.generators.double().triu(1)
        return torch.einsum("bta,ganrs->btgnrs", coords, upper - upper.transpose(-1, -2))

    def copy_heads(self, part: LieRE, rows: list[int]) -> None:
        part.generators.copy_(self.generators[rows])
