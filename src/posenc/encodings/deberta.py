"""Disentangled attention: content looks at relative positions, and relative positions look at content.

    logits = ( q_i·k_j  +  q_i·W_K p_δ  +  k_j·W_Q p_δ ) / √(d·n),   n = 1 + the number of position terms
               content     content to     position to
               to content  position       content

p_δ is row clip(δ + s, 0, 2s - 1) of a table that all layers share, δ = i - j or its bucket, s half the rows.
He et al. 2020, "DeBERTa", section 3.1, equations 4 and 13. Buckets and the normalised table are the code of version 2;
buckets are exact up to m = N/2 and then grow,

    bucket(δ) = sign(δ)·(m + ⌈(m - 1)·ln(|δ|/m) / ln((max_distance - 1)/m)⌉)      where |δ| > m

Legend: b batch, h query heads, i query, j key, d d_head, e d_model, r = 2s rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width, floating, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

Term = Literal["c2p", "p2c"]
Projection = Literal["key", "query"]
MOST = 2**48  # no bucket starts further behind the one before


class DeBERTa(PositionalEncoding):
    """Adds the position terms; q·k is attention's own, divided by √(d·n) instead of √d.

    d_model, n_heads  channels of the table and query heads
    d_head            channels of a head, d_model / n_heads if left out
    max_distance      the largest distance told apart: max_relative_positions, or max_position_embeddings where that is -1
    n_buckets         rows a side of logarithmic buckets (position_buckets, 256 in versions 2 and 3); None: none (version 1)
    terms             "c2p", "p2c" or both
    norm_eps          the table goes through a layer norm first (norm_rel_ebd of version 2); None: it does not

    Parameters: table [2s, d_model]; for each term a projection [n_heads, d_head, d_model] and its offset [n_heads, d_head]:
    key and key_offset for c2p, query and query_offset for p2c; norm and norm_offset [d_model] where there is a norm. Models
    that project content and position alike (share_att_key) have the same numbers in both.
    Raises ValueError for sizes that do not fit and terms that there are not; TypeError for positions that are not integers.
    """

    @checked
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        max_distance: int = 512,
        n_buckets: int | None = None,
        terms: tuple[Term, ...] = ("c2p", "p2c"),
        norm_eps: float | None = None,
    ) -> None:
        checks.whole(max_distance=max_distance)
        if n_buckets is not None:
            checks.whole(n_buckets=n_buckets)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model: expected a multiple of n_heads={n_heads}, got {d_model}; or say d_head")
        d_head = d_model // n_heads if d_head is None else d_head
        terms = tuple(terms)
        super().__init__(
            d_model=d_model,
            n_heads=n_heads,
            d_head=d_head,
            max_distance=max_distance,
            n_buckets=n_buckets,
            terms=terms,
            norm_eps=norm_eps,
        )
        if not terms or len(set(terms)) != len(terms) or not set(terms) <= set(get_args(Term)):
            raise ValueError(f"terms: expected 'c2p', 'p2c' or both, got {terms}")
        self.d_head, self.terms, self.norm_eps = d_head, terms, norm_eps
        self.span = max_distance if n_buckets is None else n_buckets
        self.starts = None if n_buckets is None else bucket_starts(n_buckets, max_distance)
        self.table = nn.Parameter(torch.empty(2 * self.span, d_model))
        nn.init.normal_(self.table, std=0.02)
        for term, name in (("c2p", "key"), ("p2c", "query")):
            there = term in terms
            self.register_parameter(name, nn.Parameter(torch.empty(n_heads, d_head, d_model)) if there else None)
            self.register_parameter(f"{name}_offset", nn.Parameter(torch.zeros(n_heads, d_head)) if there else None)
            if there:
                nn.init.normal_(getattr(self, name), std=0.02)
        self.norm = None if norm_eps is None else nn.Parameter(torch.ones(d_model))
        self.norm_offset = None if norm_eps is None else nn.Parameter(torch.zeros(d_model))

    @checked
    def bucket(self, delta: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """i - j, or its bucket, by comparisons of whole numbers; beyond the last bucket it stays there."""
        delta = delta.long()  # small integers overflow
        if self.starts is None:
            return delta
        exact = self.span // 2
        beyond = torch.bucketize(delta.abs(), constant(self.starts, torch.int64, delta.device), right=True)
        return delta.clamp(-exact, exact) + delta.sign() * beyond

    @checked
    def row(self, delta: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The row of the table for i - j = `delta`."""
        return (self.bucket(delta) + self.span).clamp(0, 2 * self.span - 1)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        if k.dtype != q.dtype:
            raise TypeError(f"k: expected {q.dtype} as q is, got {k.dtype}")
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        projections: tuple[tuple[Term, Projection, Tensor], ...] = (("c2p", "key", q), ("p2c", "query", k))
        scale, by_term = scale_of(self, self.d_head), {}
        with full_precision(q):
            for term, name, content in projections:
                if term in self.terms:
                    by_term[term] = content @ self.projected(name, q.dtype).transpose(-1, -2) * scale  # [b, h, t, r]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            row = self.row(query[b, i] - key[b, j])
            terms = [scores[b, h, i if term == "c2p" else j, row] for term, scores in by_term.items()]
            return terms[0] if len(terms) == 1 else terms[0] + terms[1]

        return of_pair

    @checked
    def projected(self, name: Projection, dtype: torch.dtype) -> Float[Tensor, "h r d"]:
        """The table as keys or queries of every head. Raises ValueError for a projection that the terms do not have."""
        if getattr(self, name) is None:
            raise ValueError(f"name: expected a projection of the terms {self.terms}, got {name!r}")
        floating(dtype)
        table = self.table.to(dtype)
        if self.norm is not None and self.norm_offset is not None and self.norm_eps is not None:
            table = F.layer_norm(table, table.shape[-1:], self.norm.to(dtype), self.norm_offset.to(dtype), self.norm_eps)
        weight, offset = getattr(self, name).to(dtype), getattr(self, f"{name}_offset").to(dtype)
        heads: Tensor = table @ weight.transpose(-1, -2) + offset[:, None]
        return heads

    def softmax_scale(self, d_head: int) -> float:
        checks.whole(d_head=d_head)
        return 1 / math.sqrt(d_head * (1 + len(self.terms)))

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> DeBERTa:
        part = DeBERTa(**{**self.configuration, "n_heads": stop - start}).to(self.table)
        sources = dict(self.named_parameters())
        for name, target in part.named_parameters():
            target.copy_(sources[name][start:stop] if name.startswith(("key", "query")) else sources[name])
        return part


def bucket_starts(n_buckets: int, max_distance: int) -> tuple[int, ...]:
    """The smallest distance beyond m = N/2 that lies in bucket m + 1, m + 2, … N: exact, in whole numbers.

    Bucket m + n begins at the first distance δ with (δ/m)^(m-1) > ((max_distance - 1)/m)^(n-1).
    """
    exact = n_buckets // 2
    if exact < 2 or max_distance <= exact + 1:
        raise ValueError(
            f"n_buckets, max_distance: {n_buckets} buckets a side need max_distance > {exact + 1} > 2, got {max_distance}"
        )
    starts, distance = [], exact + 1
    for n in range(1, n_buckets - exact + 1):
        passed = (max_distance - 1) ** (n - 1) * exact ** (exact - 1) // exact ** (n - 1)
        distance += bisect_right(range(distance, distance + MOST), passed, key=lambda d: d ** (exact - 1))
        starts.append(distance)
    return tuple(starts)


@checked
def deberta_v2(
    d_model: int, n_heads: int, *, d_head: int | None = None, n_buckets: int = 256, max_distance: int = 512
) -> DeBERTa:
    """`DeBERTa` with buckets and a normalised table.

    d_model, n_heads  channels of the table and query heads
    d_head            channels of a head, d_model / n_heads if left out
    n_buckets         rows a side of logarithmic buckets
    max_distance      the largest distance told apart

    Raises ValueError for sizes that do not fit.
    """
    return DeBERTa(d_model, n_heads, d_head=d_head, n_buckets=n_buckets, max_distance=max_distance, norm_eps=1e-7)
