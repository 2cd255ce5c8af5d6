"""Position from the neighbours in an image: a convolution over the patches around each, added to it.

    x_(y,x) + b + Σ_(v,h) w_(v,h)·x_(y+v, x+h)          v, h = -r … r, absent neighbours are 0

Chu et al. 2021, "Conditional Positional Encodings for Vision Transformers", section 3.2; DaViT and Florence-2 have one
before every attention and every feed-forward part.
Legend: b batch, t tokens, d d_model, i token, j neighbour, r (kernel_size - 1)/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class Conditional(PositionalEncoding):
    """x + a convolution, channel by channel, of the patches around each token. Not `local`: it reads its neighbours.

    d_model      channels
    kernel_size  patches along each axis that are read, an odd number

    Neighbours are found by their coordinates, whole numbers (y, x), in the same row and document: images may be packed,
    and patches may stand in any order. Padding and tokens with negative coordinates (CLS) get nothing and are nobody's
    neighbours. All patches of an image must be there: a shard of them cannot be told from a smaller image. A table
    of neighbours is t × t for each tap; meant for images of some thousand patches at most.
    Parameters: weight [d, kernel_size, kernel_size], first axis down, and constant [d].
    Raises ValueError for an even kernel_size.
    """

    traits = frozenset({"shift_invariant", "norm_preserving"})
    axes = 2

    @checked
    def __init__(self, d_model: int, kernel_size: int = 3) -> None:
        super().__init__(d_model=d_model, kernel_size=kernel_size)
        checks.whole(kernel_size=kernel_size)
        if kernel_size % 2 == 0:
            raise ValueError(f"kernel_size: expected an odd number from 1, got {kernel_size!r}")
        self.d_model, self.kernel_size = d_model, kernel_size
        self.weight = nn.Parameter(torch.empty(d_model, kernel_size, kernel_size).normal_(std=1 / kernel_size))
        self.constant = nn.Parameter(torch.zeros(d_model))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        y, column = at.coords.unbind(-1)
        patch = (at.document >= 0) & (y >= 0) & (column >= 0)
        together = patch[:, :, None] & patch[:, None, :] & (at.document[:, :, None] == at.document[:, None, :])
        down, right = y[:, None, :] - y[:, :, None], column[:, None, :] - column[:, :, None]  # from i to j
        dtype, reach = working_dtype(x.dtype), self.kernel_size // 2
        hidden, weight = x.to(dtype), self.weight.to(dtype)
        with full_precision(x):
            added = self.constant.to(dtype).expand_as(hidden)
            for v in range(-reach, reach + 1):
                for h in range(-reach, reach + 1):
                    neighbour = (together & (down == v) & (right == h)).to(dtype)  # [b, i, j]
                    added = added + weight[:, v + reach, h + reach] * (neighbour @ hidden)
            return (hidden + added.masked_fill(~patch[..., None], 0)).to(x.dtype)
