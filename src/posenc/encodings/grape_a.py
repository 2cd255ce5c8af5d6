"""GRAPE-A: ALiBi whose slopes are made by the content of query and key.

    logits += (j - i)·ω_h·(softplus(v_h·q_i/√d) + softplus(u_h·k_j/√d)),   ω_h ≥ 0

Zhang et al. 2025, "Group Representational Position Encoding" (GRAPE): the additive member of
the family, gated by query and key. The authors' code brings u and v to length 1 and multiplies ω with ALiBi's slopes, which
is this formula with fewer free numbers: form="code". It has variants gated by the query or the key alone: `gates`.
Legend: b batch, h query heads, i query, j key, d d_head.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.encodings.alibi import alibi_slopes
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width, exact_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Gates = Literal["both", "query", "key"]
Form = Literal["paper", "code"]


class GrapeA(PositionalEncoding):
    """(j - i)·ω·(λ(q) + λ(k)): the further away, the lower the score, at a rate that query and key choose.

    d_head   channels of a head
    n_heads  query heads
    gates    "both"; "query" or "key" leave the other one out
    form     "paper": ω = softplus(rate). "code": ω = softplus(rate)·slope, and u and v of length 1
    slopes   other slopes than ALiBi's, one for each head

    Parameters: rate [n_heads]; of_query, v, and of_key, u, [n_heads, d_head] each. Fresh, u and v are N(0, 1/d) and ω is
    the slope in both forms. With gates of a constant ½ each it is ALiBi.
    It reads queries and keys as they go into the product: do not stack it with a rotation, since a turned query says
    where it is. Time and memory O(queries·keys) for the bias, which no kernel computes.
    """

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})
    exact_parameters = ("rate",)

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        gates: Gates = "both",
        form: Form = "paper",
        slopes: tuple[float, ...] | None = None,
    ) -> None:
        checks.one_of(get_args(Gates), gates=gates)
        checks.one_of(get_args(Form), form=form)
        slopes = one_for_each(n_heads, slopes)
        super().__init__(d_head=d_head, n_heads=n_heads, gates=gates, form=form, slopes=slopes)
        self.d_head, self.n_heads, self.form, self.slopes = d_head, n_heads, form, slopes
        fresh = (1.0,) * n_heads if form == "code" else slopes
        self.rate = nn.Parameter(torch.tensor([math.log(math.expm1(rate)) for rate in fresh], dtype=exact_dtype()))
        self.of_query = nn.Parameter(torch.randn(n_heads, d_head) * d_head**-0.5) if gates != "key" else None
        self.of_key = nn.Parameter(torch.randn(n_heads, d_head) * d_head**-0.5) if gates != "query" else None

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q)
        check_coords(self, at_k)
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        omega = F.softplus(self.rate.to(q.dtype))
        if self.form == "code":
            omega = omega * constant(self.slopes, q.dtype, q.device)
        of_query, of_key = self._gate(self.of_query, q), self._gate(self.of_key, k)
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            rate = sum(gate[b, h, token] for gate, token in ((of_query, i), (of_key, j)) if gate is not None)
            return (key[b, j] - query[b, i]).to(omega.dtype) * omega[h] * rate

        return of_pair

    def _gate(self, vector: Tensor | None, x: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t"] | None:
        """softplus(vector·x/√d)."""
        if vector is None:
            return None
        if self.form == "code":
            vector = F.normalize(vector, dim=-1)
        return F.softplus((x * vector.to(x.dtype)[:, None]).sum(dim=-1) / math.sqrt(self.d_head))

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> GrapeA:
        sizes = {"n_heads": stop - start, "slopes": self.slopes[start:stop]}
        *_, of_content = self.parameters()
        part = GrapeA(**{**self.configuration, **sizes}).to(of_content)
        for target, source in zip(part.parameters(), self.parameters(), strict=True):
            target.copy_(source[start:stop])
        return part


def one_for_each(n_heads: int, slopes: tuple[float, ...] | None) -> tuple[float, ...]:
    """ALiBi's slopes, or those given. Raises ValueError for another number of them, and for one that is not "
    "positive."""
    slopes = alibi_slopes(n_heads) if slopes is None else tuple(slopes)
    for slope in slopes:
        checks.positive(slopes=slope)
    if len(slopes) != n_heads:
        raise ValueError(f"slopes: expected one for each of {n_heads} heads, got {slopes}")
    return slopes
