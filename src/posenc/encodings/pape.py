"""PaPE: every query looks along parabolas of the offset, whose width and slope it chooses by its content.

    logits += (Σ_n b_n·Δ_n - a_n·Δ_n²) / √d_head,   Δ_n = W_n·(p_i - p_j),   a = softplus(A x_i),  b = B x_i

Øhrström et al. 2026, "Where to Attend: A Principled Vision-Centric Position Encoding with Parabolas", and the authors'
code. W, A and B are learned; the products are divided by √d_head, as q·k is. PaPE-RI, one parabola of the distance alone,
is not here.
Legend: b batch, t tokens, h query heads, i query, j key, n parabolas, a axes, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, scale_of
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, one_per_head

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class PaPE(ReadsEarlierTokens):
    """A sum of parabolas of the offset for every query, added to its scores. Any real positions, attention both ways.

    d_model    channels of the hidden states that go into the projections
    n_heads    query heads
    axes       coordinates per token
    parabolas  n, of every head

    Parameters: directions [n_heads, parabolas, axes], W; weight [2, n_heads, parabolas, d_model], A and B. They start as
    layers of torch do. Call read_hidden(x, at) once a layer; `Attention` does. Positions of an image count from 1 in the
    authors' code, and its class token stands at 0; their scale matters to a fresh model, where the origin is does not.
    A token's parabolas add up to one: a slope and a curvature of every axis, which `read_hidden` computes in time
    O(t·n_heads·parabolas·d_model) and the cache holds. Time O(queries·keys·axes²), memory O(queries·keys).
    """

    reads_vectors = False
    traits = frozenset({"local", "shift_invariant", "norm_preserving"})
    exact_parameters = ("directions",)
    earlier = 0

    @checked
    def __init__(self, d_model: int, n_heads: int, *, axes: int = 2, parabolas: int = 50) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads, axes=axes, parabolas=parabolas)
        super().__init__(d_model=d_model, n_heads=n_heads, axes=axes, parabolas=parabolas)
        self.d_model, self.n_heads = d_model, n_heads
        self.axes = axes
        self.directions = nn.Parameter(torch.empty(n_heads, parabolas, axes).uniform_(-(axes**-0.5), axes**-0.5))
        weight = torch.empty(2, n_heads, parabolas, d_model)
        self.weight = nn.Parameter(weight.uniform_(-(d_model**-0.5), d_model**-0.5))

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """Slope and curvature of the sum of every token's parabolas, [b, t, h, a] and [b, t, h, a, a].

        With Δ_n = w_n·p for an offset p:   Σ b_n·Δ_n - a_n·Δ_n² = s·p - p·C·p,   s = Σ b_n w_n,   C = Σ a_n w_n w_nᵀ
        """
        width, slope = torch.einsum("btm,chnm->cbthn", x, self.weight.to(x.dtype)).unbind(0)
        along = self.directions.to(x.dtype)
        curvature = torch.einsum("bthn,hna,hnc->bthac", F.softplus(width), along, along)
        return torch.einsum("bthn,hna->btha", slope, along), curvature

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        one_per_head(self.directions[..., 0], q)
        scale, axes = scale_of(self, q.shape[-1]), range(self.axes)
        slope, curvature = (state * scale for state in self.state(at_q))
        query, key = self._coords(at_q), self._coords(at_k)

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            offset = [(query[b, i, a] - key[b, j, a]).to(slope.dtype) for a in axes]
            terms = []
            for a in axes:
                falls = [curvature[b, i, h, a, c] * offset[c] for c in axes]
                terms.append(offset[a] * (slope[b, i, h, a] - sum(falls[1:], start=falls[0])))
            total: Tensor = sum(terms[1:], start=terms[0])
            return total.to(q.dtype)

        return of_pair

    def _coords(self, at: Positions) -> Tensor:
        """[b, t, a], also of words in a row."""
        check_coords(self, at)
        return at.coords if at.coords.ndim == 3 else at.coords[..., None]

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PaPE:
        part = PaPE(**{**self.configuration, "n_heads": stop - start}).to(self.weight)
        part.directions.copy_(self.directions[start:stop])
        part.weight.copy_(self.weight[:, start:stop])
        return part
