"""A bank of learned profiles of distance, mixed by every token for itself.

    logits += (r_hi·P)[i - j]   for 0 ≤ i - j < extent, nothing elsewhere;   r_hi = W_h x_i ∈ R^n,   P ∈ R^{n × extent}

x_i is the hidden state that goes into the projections. With a floor, queries and this bias are both multiplied with
τ_i = 1 + α·ln(max((i + 1)/floor, 1)), since a longer context blurs attention. With a limit, r_hi is first scaled channel by
channel and then shortened to that length: r·min(1, limit/|r|).
Source: Inkling and, with a limit, Inkling 2, as in transformers: models/inkling and models/inkling2.
Legend: b batch, t tokens, h query heads, i query, j key, d d_head, m d_model, n profiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, Side, usual_scale
from posenc.encodings.bases.content_dependent import Reads, ReadsHidden
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width, full_precision, into, turns, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class DistanceBank(ReadsHidden):
    """(r·P)[distance], r from hidden states or from queries; zero for keys after the query and from `extent` on.

    n_heads   query heads
    d_in      channels of what is read: d_model for hidden states, d_head for queries
    profiles  rows of the bank (d_rel, 16 in Inkling)
    extent    distances that it knows (1024, or the window of a sliding layer)
    reads     "hidden": call read_hidden(x, at) once a layer. "query": every head's rotated query takes the place of x
    floor     positions up to here have τ = 1 (log_scaling_n_floor); None: everywhere
    alpha     how fast τ grows beyond
    limit     the largest length of r (rel_l2_clip_threshold of Inkling 2); None: any
    scale     the softmax scale: None is 1/√d_head; Inkling, whose queries and keys are normalised, has 1/d_head

    Parameters: project [n_heads, profiles, d_in], bank [profiles, extent]; with a limit mixing [n_heads, profiles].
    Raises TypeError for positions that are not integers, ValueError for sizes that are no counts.
    """

    def __init__(
        self,
        n_heads: int,
        d_in: int,
        *,
        profiles: int = 16,
        extent: int = 1024,
        reads: Reads = "hidden",
        floor: int | None = None,
        alpha: float = 0.1,
        limit: float | None = None,
        scale: float | None = None,
    ) -> None:
        super().__init__(
            n_heads=n_heads,
            d_in=d_in,
            profiles=profiles,
            extent=extent,
            reads=reads,
            floor=floor,
            alpha=alpha,
            limit=limit,
            scale=scale,
        )
        checks.whole(n_heads=n_heads, d_in=d_in, profiles=profiles, extent=extent)
        checks.finite(alpha=alpha)
        if floor is not None:
            checks.whole(floor=floor)
        if limit is not None:
            checks.positive(limit=limit)
        if scale is not None:
            checks.positive(scale=scale)
        self.n_heads, self.d_in, self.extent, self.limit = n_heads, d_in, extent, limit
        self.floor, self.alpha, self.scale = floor, alpha, scale
        self.seams = frozenset({"bias"}) if floor is None else frozenset({"bias", "rotate"})
        if floor is not None:
            self.traits = frozenset({"local"})
        self.project = nn.Parameter(torch.empty(n_heads, profiles, d_in))
        self.bank = nn.Parameter(torch.empty(profiles, extent))
        for parameter in (self.project, self.bank):
            nn.init.normal_(parameter, std=0.02)
        self.mixing = None if limit is None else nn.Parameter(torch.ones(n_heads, profiles))

    def of_hidden(self, x: Float[Tensor, "b t m"]) -> Float[Tensor, "b t h n"]:
        check_width(self, "d_in", x.shape[-1], self.d_in)
        return self.shortened(torch.einsum("btm,hnm->bthn", x, self.project.to(x.dtype)))

    def of_query(self, q: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t n"]:
        check_width(self, "d_in", q.shape[-1], self.d_in, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        return self.shortened((q @ self.project.to(q.dtype).transpose(-1, -2)).transpose(1, 2)).transpose(1, 2)

    def shortened(self, r: Float[Tensor, "b t h n"]) -> Float[Tensor, "b t h n"]:
        """At most as long as the limit."""
        if self.mixing is None or self.limit is None:
            return r
        r = r * self.mixing.to(r.dtype)
        shorter: Tensor = r * (self.limit / (r.norm(dim=-1, keepdim=True) + 1e-6)).clamp(max=1)
        return shorter

    def temperature(self, at: Positions, dtype: torch.dtype) -> Float[Tensor, "b 1 t 1"]:
        """τ of every token; 1 without a floor."""
        grown = ((at.coords + 1).double() / (self.floor or math.inf)).clamp(min=1).log()
        return (1 + self.alpha * grown).to(dtype)[:, None, :, None]

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not turns(side) or side == "key" or self.floor is None:
            return into(x, out)
        check_coords(self, at)
        with full_precision(x):
            return into((x * self.temperature(at, working_dtype(x.dtype))).to(x.dtype), out)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        with full_precision(q):
            mixed = self.state(q, at_q) @ self.bank.to(q.dtype)  # [b, h, i, extent]
            if self.floor is not None and self.reads == "hidden":  # queries bring their τ along
                mixed = mixed * self.temperature(at_q, q.dtype)
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            distance = query[b, i] - key[b, j]
            known = (distance >= 0) & (distance < self.extent)
            return mixed[b, h, i, distance.clamp(0, self.extent - 1)].where(known, 0)

        return of_pair

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) if self.scale is None else self.scale

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> DistanceBank:
        part = DistanceBank(**{**self.configuration, "n_heads": stop - start}).to(self.bank)
        part.project.copy_(self.project[start:stop])
        part.bank.copy_(self.bank)
        if part.mixing is not None and self.mixing is not None:
            part.mixing.copy_(self.mixing[start:stop])
        return part


@checked
def inkling(n_heads: int, d_model: int, *, profiles: int = 16, extent: int = 1024) -> DistanceBank:
    """`DistanceBank` reading hidden states.

    n_heads   query heads
    d_model   channels of the hidden states
    profiles  rows of the bank
    extent    distances that it knows: 1024, or the window of a sliding layer

    Raises ValueError for sizes that are no counts.
    """
    return DistanceBank(n_heads, d_model, profiles=profiles, extent=extent)
