"""A learned number for every head and distance up to a limit; further away counts as the limit.

    logits += b[h, clip(j - i, -k, right) + k]

T5 without its buckets. Phi-4-multimodal's audio encoder (Abouelenin et al. 2025, and their code): k = 1000, right = 999.
Legend: h query heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encodings.bases.bias_table import BiasTable
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import INTEGERS

if TYPE_CHECKING:
    from posenc.support.shapes import Int, Num


class DistanceTable(BiasTable):
    """b[clipped distance], learned.

    n_heads       query heads
    max_distance  k: keys further before the query count as this far
    right         the same for keys after the query; k unless said

    Parameter: table [k + 1 + right, n_heads], the furthest before the query first.
    Raises ValueError for a limit that is no whole number from 0, TypeError for positions that are not integers.
    """

    @checked
    def __init__(self, n_heads: int, *, max_distance: int = 128, right: int | None = None) -> None:
        checks.whole(0, max_distance=max_distance)
        super().__init__(n_heads=n_heads, max_distance=max_distance, right=right)
        self.max_distance, self.right = max_distance, max_distance if right is None else right
        self.table = nn.Parameter(torch.empty(self.max_distance + 1 + self.right, n_heads))
        nn.init.normal_(self.table, std=0.02)

    @checked
    def row(self, delta: Num[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        if delta.dtype not in INTEGERS:
            raise TypeError(f"DistanceTable: needs integer positions, got {delta.dtype} as delta")
        # int64, since small integers overflow
        return (-delta.long()).clamp(-self.max_distance, self.right) + self.max_distance
