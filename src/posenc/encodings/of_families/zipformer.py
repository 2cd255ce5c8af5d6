"""Zipformer's relative positions: a few channels of their own meet a compressed sinusoid of the distance.

    logits = q_hi·k_hj + p_hi·W_h R(j - i)                    p_hi = W x_i + w, four channels for each head; no 1/√d
    R(x) = [cos a, sin a, cos 2a, sin 2a, …, cos na, 1],      a = atan(2π/(f·m)·√m·sign(x)·ln(1 + |x|/√m)),   n = m/2

The interval of all distances becomes (-π/2, π/2): near ones are told apart, far ones nearly alike.
Yao et al. 2023, "Zipformer", and icefall's CompactRelPositionalEncoding and RelPositionMultiheadAttentionWeights.
Legend: b batch, t tokens, h query heads, i query, j key, d d_head, m channels of R, n = m/2, s pos_head_dim.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import Reads, ReadsHidden
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class ZipformerPositions(ReadsHidden):
    """p·W_h R(j - i), and no scale of q·k: Zipformer's projections hold it.

    d_model        channels of the hidden state
    n_heads        query heads
    pos_dim        m, channels of R, even
    pos_head_dim   s, channels of p for each head
    length_factor  f: larger ones give less detail near and more far away
    reads          "hidden": call read_hidden(x, at) once a layer; "query": p is the first channels of the query

    Parameters: weight [n_heads, pos_head_dim, pos_dim], icefall's linear_pos. Where hidden states are read also of_state
    [n_heads, pos_head_dim, d_model] and its offset [n_heads, pos_head_dim], the last rows of icefall's in_proj.
    Time and memory O(queries·keys·pos_dim) and O(queries·keys). Raises ValueError for an odd pos_dim and a factor below 1.
    """

    traits = frozenset({"local", "shift_invariant", "norm_preserving"})

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        pos_dim: int = 48,
        pos_head_dim: int = 4,
        length_factor: float = 1.0,
        reads: Reads = "hidden",
    ) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads, pos_dim=pos_dim, pos_head_dim=pos_head_dim)
        checks.positive(length_factor=length_factor)
        if pos_dim % 2 or length_factor < 1:
            raise ValueError(
                f"pos_dim, length_factor: expected an even width and 1 or more, got {pos_dim}, {length_factor}"
            )
        sizes = {"pos_dim": pos_dim, "pos_head_dim": pos_head_dim, "length_factor": length_factor}
        super().__init__(d_model=d_model, n_heads=n_heads, **sizes, reads=reads)
        self.d_model, self.n_heads, self.pos_dim, self.pos_head_dim = d_model, n_heads, pos_dim, pos_head_dim
        self.length_factor = length_factor
        self.weight = nn.Parameter(torch.empty(n_heads, pos_head_dim, pos_dim).normal_(std=0.05))
        hidden = reads == "hidden"
        self.of_state = nn.Parameter(torch.empty(n_heads, pos_head_dim, d_model).normal_(std=0.05)) if hidden else None
        self.offset = nn.Parameter(torch.zeros(n_heads, pos_head_dim)) if hidden else None

    def of_hidden(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b t h s"]:
        check_width(self, "d_model", x.shape[-1], self.d_model)
        assert self.of_state is not None
        assert self.offset is not None
        projected = F.linear(x, self.of_state.flatten(0, 1).to(x.dtype), self.offset.flatten().to(x.dtype))
        state: Tensor = projected.unflatten(-1, (self.n_heads, self.pos_head_dim))
        return state

    def of_query(self, q: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t s"]:
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        return q[..., : self.pos_head_dim]

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at)
        vectors = self.state(q, at_q) @ self.weight.to(q.dtype)  # [b, h, i, m]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            angle, cos, sin = self.angle(key[b, j] - query[b, i]), vectors[..., 0::2], vectors[..., 1::2]
            term = sin[b, h, i, -1].expand(torch.broadcast_shapes(b.shape, h.shape, i.shape, j.shape))
            for n in range(self.pos_dim // 2):
                term = term + cos[b, h, i, n] * ((n + 1) * angle).cos().to(q.dtype)
                if n + 1 < self.pos_dim // 2:  # the last channel is 1
                    term = term + sin[b, h, i, n] * ((n + 1) * angle).sin().to(q.dtype)
            return term

        return of_pair

    def angle(self, distance: Num[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        """a of each distance, key minus query, between -π/2 and π/2; fp64."""
        x, root = distance.double(), math.sqrt(self.pos_dim)
        compressed = root * x.sign() * (x.abs() / root).log1p()
        return (compressed * (2 * math.pi / (self.length_factor * self.pos_dim))).atan()

    def softmax_scale(self, d_head: int) -> float:
        return 1.0

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> ZipformerPositions:
        part = ZipformerPositions(**{**self.configuration, "n_heads": stop - start}).to(self.weight)
        for target, source in zip(part.parameters(), self.parameters(), strict=True):
            target.copy_(source[start:stop])
        return part
