"""Relative positions of images: a vector for every bucket of the offset of two patches, for keys, queries or values.

    logits += q_i·r[I(i, j)]/√d                 on keys, as by default
    logits += k_j·r[I(j, i)]/√d                 on queries
    out_i  += Σ_j probs_ij·r[I(i, j)]           on values

The index I of the offset (Δy, Δx) = position of i - position of j, with one function g of a whole number:

    product       (g(Δy), g(Δx)), a row for every combination         cross       r_y[g(Δy)] + r_x[g(Δx)]
    euclidean     g(round(√(Δy² + Δx²)))                              quantization   g(Δy² + Δx²)
    g(x) = x up to α, then sign(x)·min(β, round(α + (β - α)·ln(|x|/α)/ln(γ/α)))      α, β, γ = ratio·(1, 2, 8), g whole

Wu et al. 2021, "Rethinking and Improving Relative Position Encoding for Vision Transformer" (iRPE), section 3, and the
authors' code. A bias mode has a number in the place of q_i·r/√d. Any pair with the class token has one row more.
Legend: b batch, h query heads, i query, j key, d d_head, n buckets.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.structure import Scores
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_added, check_coords, check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

Method = Literal["product", "cross", "euclidean", "quantization"]
Mode = Literal["contextual", "bias"]
On = Literal["key", "query", "value"]
LARGEST_RATIO = 64  # 66 049 buckets


class IRPE(PositionalEncoding):
    """q·r of the offset's bucket, learned; any size of image.

    d_head           channels of a head
    n_heads          query heads
    on               "key", "query", "value" or several: whose vectors are looked up
    method           "product", which is best in the paper, "cross", "euclidean" or "quantization"
    mode             "contextual": vectors that meet the content. "bias": a number for each bucket and head
    ratio            of the buckets: up to 2·ratio a side, 1.9 in the authors' models
    shared           whether all heads have the same vectors

    Parameters: of_key, of_query, of_value [heads, n, d_head], heads 1 where shared ([heads, n] in the bias mode), zero
    at the start as in the authors' code; the last row is the class token's. With "cross", n is that of rows, then of
    columns. Coordinates are (row, column), whole numbers; a token with negative ones is the class token.
    Time O(queries·n·d) and a look-up for every pair; memory O(queries·keys).
    Raises ValueError for a bias on values, a ratio outside 1 … 64 and sizes that do not fit, TypeError for real positions.
    """

    axes = 2
    of_value: Tensor | None

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        on: tuple[On, ...] = ("key",),
        method: Method = "product",
        mode: Mode = "contextual",
        ratio: float = 1.9,
        shared: bool = True,
    ) -> None:
        checks.whole(d_head=d_head, n_heads=n_heads)
        checks.one_of(get_args(Method), method=method)
        checks.one_of(get_args(Mode), mode=mode)
        checks.positive(ratio=ratio)
        on = tuple(on)
        super().__init__(d_head=d_head, n_heads=n_heads, on=on, method=method, mode=mode, ratio=ratio, shared=shared)
        if not on or len(set(on)) != len(on) or not set(on) <= set(get_args(On)):
            raise ValueError(f"on: expected 'key', 'query', 'value' or several of them, got {on}")
        if mode == "bias" and "value" in on:
            raise ValueError("on: values have vectors only; leave 'value' out, or take mode='contextual'")
        if not 1 <= ratio <= LARGEST_RATIO:
            raise ValueError(f"ratio: expected a number 1 … {LARGEST_RATIO}, got {ratio}")
        self.d_head, self.n_heads, self.on, self.method, self.mode, self.shared = d_head, n_heads, on, method, mode, shared
        if "value" not in on:
            self.seams = frozenset({"bias"})
        elif set(on) == {"value"}:
            self.seams = frozenset({"finish"})
        self.starts = bucket_starts(ratio)
        sides = 2 * len(self.starts) + 1
        self.buckets = {"product": sides**2, "cross": 2 * sides}.get(method, len(self.starts) + 1)
        width = () if mode == "bias" else (d_head,)
        for name in get_args(On):
            table = nn.Parameter(torch.zeros(1 if shared else n_heads, self.buckets + 1, *width))
            self.register_parameter(f"of_{name}", table if name in on else None)

    @property
    def reads_vectors(self) -> bool:
        return self.mode == "contextual" and "bias" in self.seams

    @checked
    def bucket(self, query: Int[Tensor, "*s 2"], key: Int[Tensor, "*s 2"]) -> list[Int[Tensor, "*s"]]:
        """The rows of the pair, whose vectors are added: two with "cross", else one."""
        down, across = (query.long() - key.long()).unbind(-1)
        side = len(self.starts)
        if self.method == "product":
            rows = [(self._signed(down) + side) * (2 * side + 1) + self._signed(across) + side]
        elif self.method == "cross":
            rows = [self._signed(down) + side, self._signed(across) + 3 * side + 1]
        else:
            nearest = self.method == "euclidean"  # round(√n) reaches m at n = m² - m + 1
            starts = tuple(m * m - m + 1 for m in self.starts) if nearest else self.starts
            rows = [_passed(down * down + across * across, starts)]
        is_class = (query < 0).any(-1) | (key < 0).any(-1)
        of_class = [torch.full_like(rows[0], self.buckets), torch.full_like(rows[0], -1)]  # -1: nothing is added
        return [torch.where(is_class, theirs, row) for row, theirs in zip(rows, of_class, strict=False)]

    def _signed(self, offset: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """g of a difference of rows or of columns."""
        return offset.sign() * _passed(offset.abs(), self.starts)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn | None:
        if "bias" not in self.seams:
            return None
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        query, key, scores = at_q.coords, at_k.coords, {}
        with full_precision(q):
            for name, content in (("key", q), ("query", k)):
                if name in self.on:
                    table = getattr(self, f"of_{name}").to(q.dtype)
                    if self.mode == "bias":
                        scores[name] = table.expand(self.n_heads, -1)[None, :, None].expand(*content.shape[:3], -1)
                    else:
                        scores[name] = content @ table.transpose(-1, -2) * scale_of(self, self.d_head)  # [b, h, t, n]

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            here, there = query[b, i], key[b, j]
            terms = []
            for name, score in scores.items():
                token, rows = (i, self.bucket(here, there)) if name == "key" else (j, self.bucket(there, here))
                terms += [score[b, h, token, row.clamp(min=0)].where(row >= 0, 0) for row in rows]
            total: Tensor = functools.reduce(torch.add, terms)
            return total

        return of_pair

    def finish(self, scores: Scores) -> Tensor:
        weights = scores.weights(scores.logits)
        if self.of_value is None:
            return scores.mix(weights)
        addend = self._of_buckets(weights, scores.at_q, scores.at_k)
        check_added(self, addend, scores.v)
        return scores.mix(weights) + addend

    def _of_buckets(self, probs: Tensor, at_q: Positions, at_k: Positions) -> Float[Tensor, "b h i d"]:
        """The vectors of the values' buckets, weighted."""
        assert self.of_value is not None
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        by_row = probs.new_zeros(*probs.shape[:3], self.buckets + 1)
        for row in self.bucket(at_q.coords[:, :, None], at_k.coords[:, None]):
            counted = probs.where((row >= 0)[:, None], 0)
            by_row = by_row.scatter_add(-1, row.clamp(min=0)[:, None].expand_as(probs), counted)
        return by_row @ self.of_value.to(probs.dtype)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> IRPE:
        part = IRPE(**{**self.configuration, "n_heads": stop - start}).to(next(self.parameters()))
        sources = dict(self.named_parameters())
        for name, target in part.named_parameters():
            target.copy_(sources[name] if self.shared else sources[name][start:stop])
        return part


def bucket_starts(ratio: float) -> tuple[int, ...]:
    """The smallest whole number x with g(x) = 1, 2, … the last bucket of a side."""
    alpha, beta, gamma = ratio, 2 * ratio, 8 * ratio

    def g(x: int) -> int:
        if x <= alpha:
            return x
        return int(min(beta, round(alpha + (beta - alpha) * math.log(x / alpha) / math.log(gamma / alpha))))

    starts, x = [], 1
    for bucket in range(1, int(beta) + 1):
        while g(x) < bucket:
            x += 1
        starts.append(x)
    return tuple(starts)


def _passed(distance: Int[Tensor, "*s"], starts: tuple[int, ...]) -> Int[Tensor, "*s"]:
    """The number of buckets that begin at or before a distance."""
    return (distance[..., None] >= constant(starts, torch.long, distance.device)).sum(dim=-1)
