"""GRAPE-AP: the score of a key falls by what the query thinks of every token after that key.

    logits += Σ_{l = j+1 … i} ψ(i, l),   ψ(i, l) = m_h · ln σ(p_i · R(l) p_l / w)

p is a projection of the hidden state to w channels for each head, brought to a mean square of 1; R(l) turns every pair of
them by l radians; m are ALiBi's slopes.
Zhang et al. 2025, "Group Representational Position Encoding" (GRAPE). FoX is the case in which
ψ does not depend on the query. The authors' code leaves p_i as it is and normalises p_l alone, pairs channel n with channel
n + w/2 instead of neighbours, and turns by -l: form="code", which reads its c_p.weight as it is. R turns by the token's
position and not by a distance, so that a shift of all positions changes the bias.
Legend: b batch, t tokens, h query heads, i query, j key, m d_model, w channels of p.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens, along_the_path, taken
from posenc.encodings.grape_a import one_for_each
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Form = Literal["paper", "code"]


class GrapeAP(ReadsEarlierTokens):
    """The sum of m·ln σ(p_i·R(l)p_l/w) over the tokens l between key and query, the query's own included.

    d_model  channels of the hidden states that go into the projections
    n_heads  query heads
    width    w, even; 8 in the authors' training
    form     "paper", or "code" for the authors' code
    slopes   other slopes than ALiBi's, one for each head

    Parameter: weight [n_heads·width, d_model], the authors' c_p.weight. Call read_hidden(x, at) once a layer; `Attention`
    does. The authors use it with and without RoPE: Stack(RoPE(d_head), GrapeAP(d_model, n_heads)).
    Time O(queries·keys·width) and memory O(queries·keys); for every token the cache holds n_heads·width numbers more.
    """

    traits = frozenset({"local", "norm_preserving", "causal_only"})
    earlier = 0

    @checked
    def __init__(
        self, d_model: int, n_heads: int, *, width: int = 8, form: Form = "paper", slopes: tuple[float, ...] | None = None
    ) -> None:
        checks.even(width=width)
        checks.one_of(get_args(Form), form=form)
        slopes = one_for_each(n_heads, slopes)
        super().__init__(d_model=d_model, n_heads=n_heads, width=width, form=form, slopes=slopes)
        self.d_model, self.n_heads, self.width, self.form, self.slopes = d_model, n_heads, width, form, slopes
        self.weight = nn.Parameter(torch.empty(n_heads * width, d_model).uniform_(-(d_model**-0.5), d_model**-0.5))

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """p of every token, [b, t, h·w], as it is projected."""
        return (F.linear(x, self.weight.to(x.dtype)),)

    def _probes(self, at: Positions, dtype: torch.dtype) -> Float[Tensor, "b t h w"]:
        probes: Tensor = self.state(at)[0].to(dtype).unflatten(-1, (self.n_heads, self.width))
        return probes

    def _potentials(self, query: Tensor, key: Tensor, coords: Tensor) -> Float[Tensor, "b h i j"]:
        """ψ of all pairs, keys in the order of the path."""
        key = _normal(key).transpose(1, 2)
        angle = coords.double()[:, None, :, None].expand(*key.shape[:-1], self.width // 2)
        layout: Layout = "interleaved"
        if self.form == "code":
            layout, angle = "half", -angle
        turned = rotate(key, angle.cos().to(key.dtype), angle.sin().to(key.dtype), layout)
        products = (query if self.form == "code" else _normal(query)).transpose(1, 2) @ turned.transpose(-1, -2)
        return F.logsigmoid(products / self.width) * constant(self.slopes, key.dtype, key.device)[:, None, None]

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q)
        check_coords(self, at_k)
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        index, last = along_the_path(at_q, at_k)
        key, coords = self._probes(at_k, q.dtype), at_k.coords
        if index is not None:
            key, coords = taken(key, index), coords.gather(1, index)
        edges = self._potentials(self._probes(at_q, q.dtype), key, coords)
        after = torch.arange(edges.shape[-1], device=q.device) > last[:, None, :, None]  # [b, 1, i, j]
        edges = edges.masked_fill(after, 0.0)
        total = edges.flip(-1).cumsum(dim=-1).flip(-1) - edges  # the tokens after the key: small sums first
        place = None if index is None else index.argsort(dim=1)

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return total[b, h, i, j if place is None else place[b, j]]

        return of_pair

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> GrapeAP:
        sizes = {"n_heads": stop - start, "slopes": self.slopes[start:stop]}
        part = GrapeAP(**{**self.configuration, **sizes}).to(self.weight)
        part.weight.copy_(self.weight[start * self.width : stop * self.width])
        return part


def _normal(p: Float[Tensor, "b t h w"]) -> Float[Tensor, "b t h w"]:
    """Brought to a mean square of 1, as torch's rms_norm does."""
    return F.rms_norm(p, p.shape[-1:])
