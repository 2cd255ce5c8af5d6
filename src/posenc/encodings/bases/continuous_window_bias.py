"""Swin v2: the bias of a window as a smooth function of the difference, and attention by angle.

    logits = exp(min(s_h, ln 100)) · cos(q_i, k_j)  +  16·σ( W₂ relu(W₁ x + w₁) )_h
    x = sign(δ)·log₂(1 + 8|δ|) / log₂ 8,   δ = (Δr/(H - 1), Δc/(W - 1))

The network reads logarithms of differences relative to the window it was trained on, so it can be used with other windows.
Liu et al. 2021, "Swin Transformer V2", sections 3.2 and 3.3; the factor 8, 16·σ and the bound of s are their code's.
Legend: b batch, t tokens, h query heads, i query, j key, d d_head, H height, W width of the window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, Side
from posenc.encodings.bases.window_bias import InWindow, check_window
from posenc.positions import Positions, own_rows
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_width, full_precision, into, turns, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float

LARGEST = math.log(100)  # the bound of the logarithm of the scale


class ContinuousWindowBias(InWindow):
    """16·σ(network(log difference)) and cosine attention with a learned scale for each head.

    n_heads  query heads
    window   (height, width) of the window, in positions
    trained  the window that the network was trained on; None: this one
    hidden   channels of the network

    Parameters: log_scale [n_heads], inner [hidden, 2], inner_offset [hidden], outer [n_heads, hidden].
    `rotate` brings queries to length exp(min(s, ln 100)), of each head its own, and keys to length 1.
    """

    traits = frozenset({"local", "shift_invariant"})
    reads_vectors = False

    def __init__(
        self, n_heads: int, window: tuple[int, int], *, trained: tuple[int, int] | None = None, hidden: int = 512
    ) -> None:
        window = check_window("ContinuousWindowBias", window)
        trained = None if trained is None else check_window("ContinuousWindowBias", trained)
        super().__init__(n_heads=n_heads, window=window, trained=trained, hidden=hidden)
        checks.whole(n_heads=n_heads, hidden=hidden)
        self.window, self.trained = window, window if trained is None else trained
        self.log_scale = nn.Parameter(torch.full((n_heads,), math.log(10)))
        self.inner = nn.Parameter(torch.empty(hidden, 2))
        self.inner_offset = nn.Parameter(torch.zeros(hidden))
        self.outer = nn.Parameter(torch.empty(n_heads, hidden))
        nn.init.normal_(self.inner, std=0.5)
        nn.init.normal_(self.outer, std=0.02)

    def differences(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "n 2"]:
        """Every difference in the window as the network sees it, rows first."""
        axes = []
        for size, trained in zip(self.window, self.trained, strict=True):
            share = torch.arange(1 - size, size, dtype=torch.float64, device=device) / max(trained - 1, 1)
            axes.append(share.sign() * torch.log2(1 + 8 * share.abs()) / math.log2(8))
        return torch.cartesian_prod(*axes).to(dtype)

    def table(self, dtype: torch.dtype) -> Float[Tensor, "n h"]:
        """The bias of every difference and head."""
        inner, offset, outer = (p.to(dtype) for p in (self.inner, self.inner_offset, self.outer))
        network = F.linear(F.linear(self.differences(dtype, inner.device), inner, offset).relu(), outer)
        return 16 * network.sigmoid()

    def structure(self) -> Rotation:
        return Rotation((), ())  # it changes lengths alone

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side):
            return into(x, out)
        with full_precision(x):
            unit = F.normalize(x.to(working_dtype(x.dtype)), dim=-1)
            if side == "query":
                check_width(self, "n_heads", x.shape[1], len(self.log_scale))
                unit = unit * self.log_scale.to(unit.dtype).clamp(max=LARGEST).exp()[:, None, None]
            return into(unit.to(x.dtype), out)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        self.check_window(at_q, at_k)
        with full_precision(q):
            table = self.table(q.dtype)
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            return table[self.offset(query[b, i], key[b, j]), h]

        return of_pair

    def softmax_scale(self, d_head: int) -> float:
        return 1.0

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> ContinuousWindowBias:
        part = ContinuousWindowBias(**{**self.configuration, "n_heads": stop - start}).to(self.inner)
        part.inner.copy_(self.inner)
        part.inner_offset.copy_(self.inner_offset)
        part.log_scale.copy_(self.log_scale[start:stop])
        part.outer.copy_(self.outer[start:stop])
        return part


@checked
def swin_v2(n_heads: int, *, height: int = 8, width: int = 8) -> ContinuousWindowBias:
    """`ContinuousWindowBias` of a window.

    n_heads        query heads
    height, width  of the window, in patches

    Raises ValueError for sizes that are not positive.
    """
    return ContinuousWindowBias(n_heads, (height, width))
