"""ALiBi as Falcon's code in transformers computes it: divided by √d_head, rounded to bfloat16, read off the key alone.

    logits = (q·k + bf16(bf16(m_h)·bf16(j))) / √d_head,   j the position of the key, m_h as in ALiBi

The distance i - j would give the same after a causal softmax, were it not for the rounding: bfloat16 has 8 bits, so from
position 257 on neighbouring keys may share a bias. Rounded here because the models were trained and are run so.
Source: transformers, models/falcon/modeling_falcon.py, build_alibi_tensor and FalconAttention.
Legend: h query heads, j key.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.encodings.alibi import alibi_slopes
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords


class FalconALiBi(PositionalEncoding):
    """Falcon's rounded bias of the key's position. No parameters; causal only, since it knows no distance.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    slopes   other slopes than ALiBi's, one per head
    twice    the eager path of transformers 5.23 adds the bias to the logits and again to the mask; its sdpa path, once

    Without the rounding it is ALiBi(n_heads, slopes=tuple(slope / √d_head for slope in alibi_slopes(n_heads))).
    Raises TypeError for positions that are not integers, ValueError for slopes that are not one per head.
    """

    traits = frozenset({"local", "norm_preserving", "causal_only"})

    def __init__(self, n_heads: int, *, slopes: tuple[float, ...] | None = None, twice: bool = False) -> None:
        checks.whole(n_heads=n_heads)
        slopes = alibi_slopes(n_heads) if slopes is None else tuple(map(float, slopes))
        super().__init__(n_heads=n_heads, slopes=slopes, twice=twice)
        if len(slopes) != n_heads or not all(map(math.isfinite, slopes)):
            raise ValueError(f"slopes: expected a finite number for each of {n_heads} heads, got {slopes}")
        self.slopes, self.twice = slopes, twice

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_k, integers=True)
        slopes = constant(self.slopes, torch.bfloat16, k.device).float()
        # The product of two bfloat16 is exact in float32, and runtimes of exported graphs may not multiply bfloat16.
        rounded = (slopes[:, None, None] * at_k.coords.bfloat16().float()).bfloat16()  # [h, b, j]
        bias = rounded.to(q.dtype) * scale_of(self, q.shape[-1]) * (2 if self.twice else 1)
        return lambda b, h, i, j: bias[h, b, j]

    def heads(self, start: int, stop: int) -> FalconALiBi:
        return FalconALiBi(stop - start, slopes=self.slopes[start:stop], twice=self.twice)


@checked
def falcon_alibi(n_heads: int) -> FalconALiBi:
    """`FalconALiBi`.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    """
    return FalconALiBi(n_heads)
