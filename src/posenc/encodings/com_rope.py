"""ComRoPE: rotations in more than two channels, with learned generators that commute.

    R(p) = exp(Σ_a m_a p_a A)      in each block of channels, A = F - Fᵀ learned; m learned for each axis (LD), or 1 for
                                   the one axis that the block reads and 0 for others (AP)

Yu et al. 2025, "ComRoPE: Scalable and Robust Rotary Position Embedding Parameterized by Trainable Commuting Angle
Matrices", section 3: all generators of a block are multiples of one matrix, so that R(p)ᵀR(p') depends on the difference
alone. LieRE has a free A for each axis (liere.py), so that this does not hold. Blocks of two channels are RoPE-Mixed.
Legend: b batch, h heads, g generators' heads, t tokens, a axes, n blocks, s channels of a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.encodings.bases.block_rotation import BlockRotation
from posenc.support import checks
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Form = Literal["LD", "AP"]


class ComRoPE(BlockRotation):
    """Blocks of queries and keys multiplied with exp(c·A), c a learned mixture of the coordinates, A learned and skew.

    d_head      channels of a head
    n_heads     query heads
    n_kv_heads  key heads, each with generators of its own; None: n_heads
    axes        coordinates per token, in the authors' code from 0 to 1: middles of the patches over the size of the image
    block       channels of a block; None: 8, as in the paper's best models, or as many as divide the head
    form        "LD": linearly dependent, every block reads all axes. "AP": axis-partitioned, every block reads one

    Parameters: generators [n_kv_heads, blocks, block, block], F; with "LD" mixture [axes, blocks]. They start as N(0, 1),
    as in the authors' code. Time O(t·heads·d_head·block²) for exponentials in fp64, and O(t·heads·d_head·block) to turn.
    Raises ValueError for blocks that do not fill the head, or cannot be dealt out.
    """

    exact_parameters = ("generators", "mixture")

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        axes: int = 2,
        block: int | None = None,
        form: Form = "LD",
    ) -> None:
        checks.one_of(get_args(Form), form=form)
        super().__init__(d_head, n_heads, n_kv_heads=n_kv_heads, axes=axes, block=block, form=form)
        if form == "AP" and self.blocks % axes:
            among = f"blocks of {self.block} channels and {axes} axes"
            raise ValueError(f"block: d_head={d_head} cannot be shared evenly by {among}")
        self.form = form
        self.generators = nn.Parameter(torch.randn(self.key_heads, self.blocks, self.block, self.block))
        self.mixture = nn.Parameter(torch.randn(axes, self.blocks)) if form == "LD" else None

    def exponents(self, coords: Float[Tensor, "b t a"]) -> Float[Tensor, "b t g n s s"]:
        if self.mixture is not None:
            reads = self.mixture.double()
        else:
            axis = torch.arange(self.blocks, device=coords.device) // (self.blocks // self.axes)
            reads = (axis == torch.arange(self.axes, device=coords.device)[:, None]).double()
        along = (coords[..., None] * reads).sum(dim=2)  # [b, t, n]
        skew = self.generators.double() - self.generators.double().transpose(-1, -2)
        return along[:, :, None, :, None, None] * skew

    def copy_heads(self, part: ComRoPE, rows: list[int]) -> None:
        part.generators.copy_(self.generators[rows])
        if part.mixture is not None and self.mixture is not None:
            part.mixture.copy_(self.mixture)
