"""LePE: every value's neighbourhood in the image, by a depthwise convolution, added to the output of attention.

    out_i = Σ_j a_ij v_j + Σ_o w_o ⊙ v_(i + o) + c,   o over the offsets of a 3 × 3 kernel

Dong et al. 2021, "CSWin Transformer: A General Vision Transformer Backbone with Cross-Shaped Windows", and the authors'
code. The attention weights know no positions.
Legend: b batch, h query heads, g key heads, i query, j key, d channel, o offsets of the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import added_to_output
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_accepted, check_coords, check_width, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int


class LePE(PositionalEncoding):
    """A depthwise convolution of the values over rows and columns, added to the output of attention.

    d_head       channels of a value
    n_heads      query heads
    kernel_size  rows and columns of the kernel, odd

    Coordinates are (row, column), whole numbers. A neighbour counts where the query may see it: in its own document, so
    that windows which are documents are convolved apart, and not later under a causal mask. Tokens may stand in any order.
    Parameters: kernel [n_heads, d_head, kernel_size, kernel_size] and constant [n_heads, d_head]; they start as those of
    torch's Conv2d. Any attention kernel serves it. Time O(kernel_size²·queries·keys) to find the neighbours, whatever the
    number of channels; memory O(queries·keys).
    Raises ValueError for an even kernel, other heads or channels, and two tokens of one document with the same coordinates;
    TypeError for coordinates that are not integers.
    """

    reads_vectors = False
    axes = 2

    @checked
    def __init__(self, d_head: int, n_heads: int, *, kernel_size: int = 3) -> None:
        checks.whole(d_head=d_head, n_heads=n_heads, kernel_size=kernel_size)
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size: expected an odd number, so that it has a middle, got {kernel_size}")
        super().__init__(d_head=d_head, n_heads=n_heads, kernel_size=kernel_size)
        self.d_head, self.n_heads, self.reach = d_head, n_heads, kernel_size // 2
        self.kernel = nn.Parameter(torch.empty(n_heads, d_head, kernel_size, kernel_size))
        self.constant = nn.Parameter(torch.empty(n_heads, d_head))
        for parameter in (self.kernel, self.constant):
            nn.init.uniform_(parameter, -1 / kernel_size, 1 / kernel_size)

    @added_to_output
    def finish(
        self, v: Float[Tensor, "b g j d"], at_q: Positions, at_k: Positions, may_attend: Bool[Tensor, "b #h i j"]
    ) -> Float[Tensor, "b h i d"]:
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
        check_width(self, "d_head", v.shape[-1], self.d_head, of="v")
        with full_precision(v):
            dtype = working_dtype(v.dtype)
            values = v.repeat_interleave(self.n_heads // v.shape[1], dim=1).to(dtype)
            kernel, constant = self.kernel.to(dtype), self.constant.to(dtype)
            added = constant[:, None] * may_attend.any(-1, keepdim=True)
            if not may_attend.shape[-1]:  # no keys
                return added
            near, count = torch.zeros_like(may_attend), torch.zeros_like(may_attend[..., :1], dtype=torch.int32)
            rows, columns = (_apart(at_q.coords[..., axis], at_k.coords[..., axis]) for axis in (0, 1))
            for row in range(-self.reach, self.reach + 1):
                in_row = may_attend & (rows == row)
                for column in range(-self.reach, self.reach + 1):
                    there = in_row & (columns == column)
                    present, which = there.int().max(dim=-1, keepdim=True)
                    near, count = near | there, count + present
                    neighbour = values.gather(2, which.expand(*added.shape[:3], values.shape[-1])) * present
                    added = added + neighbour * kernel[:, None, :, row + self.reach, column + self.reach]
        message = "LePE: a token at {} has two neighbours with the same coordinates in its document"
        unique = (near.sum(-1, keepdim=True) == count)[..., 0].all(1)  # [b, i]
        check_accepted(at_q.coords.expand(*unique.shape, 2), unique, message)
        return added

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> LePE:
        part = LePE(**{**self.configuration, "n_heads": stop - start}).to(self.kernel)
        part.kernel.copy_(self.kernel[start:stop])
        part.constant.copy_(self.constant[start:stop])
        return part


def _apart(query: Int[Tensor, "b i"], key: Int[Tensor, "b j"]) -> Int[Tensor, "b 1 i j"]:
    """How far the key lies after the query along one axis."""
    return (key[:, None, :] - query[:, :, None])[:, None]
