"""A learned function of the distance, relative to the position of the query: a small network reads a number from 0 to 1.

    logits += f( ψ(|i - j|) / ψ(max(i, L)) ),   ψ(x) = ln(1 + c·x),   f(x) = W₂·relu(w₁·x + b₁) + b₂

Li et al. 2024, "Functional Interpolation for Relative Positions Improves Long Context Transformers" (FIRE), and
the listing of its appendix: c = |c|, L = |multiplier|·L₀, and 1e-6 is added to the denominator.
Dividing by the query's own position keeps the number in 0 … 1 at every length. Up to position L the bias depends on the
distance alone; beyond, no table of distances exists.
Legend: b batch, h query heads, i query, j key, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, DistanceBias, PositionalEncoding
from posenc.kernels.eager import exporting, plain_on_cpu, wants_gradient
from posenc.positions import Positions, own_rows
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_distances, exact_dtype, full_precision, one_per_head

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

PAIRS = 2**14  # of query and key whose hidden units are computed at once


class FIRE(PositionalEncoding):
    """f(ψ(distance) / ψ(max(position of the query, L))), f a network of one hidden layer. Any length.

    n_heads         query heads
    width           hidden units of f
    first_length    L₀, the threshold to start with
    first_c         c to start with

    Parameters: c, multiplier [1], and those of f: inner [2, width] holds w₁ and b₁, outer [n_heads, width] and
    offset [n_heads] W₂ and b₂. They start as the listing's two linear layers.
    Not invariant under shifts: positions are counted from the first token, which is 0.
    Time O(queries·keys·width); `at_length(n)` of a request within L is a bias of the distance alone, in O(n·width). The
    caller asks for it, because L is learned: a forward that chose by its value would break a compiled graph, and would
    wait for a GPU in every layer. Results of the two differ by rounding.
    """

    traits = frozenset({"local", "norm_preserving"})
    exact_parameters = ("c", "multiplier")

    @checked
    def __init__(self, n_heads: int, *, width: int = 32, first_length: int = 512, first_c: float = 0.1) -> None:
        checks.whole(first_length=first_length)
        checks.positive(first_c=first_c)
        checks.moderate(first_c=first_c)
        super().__init__(n_heads=n_heads, width=width, first_length=first_length, first_c=first_c)
        self.first_length = first_length
        self.c, self.multiplier = (
            nn.Parameter(torch.tensor([float(first_c)], dtype=exact_dtype())),
            nn.Parameter(torch.ones(1)),
        )
        bound = width**-0.5
        self.inner = nn.Parameter(torch.empty(2, width).uniform_(-1, 1))
        self.outer = nn.Parameter(torch.empty(n_heads, width).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.empty(n_heads).uniform_(-bound, bound))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q)
        check_coords(self, at_k)
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            position = query[b, i]
            terms = self._by_rows((position - key[b, j]).abs().double(), position.double(), q.dtype)  # [..., h]
            flat = one_per_head(terms.flatten(0, -2).T, q)
            return flat[h, torch.arange(flat.shape[1], device=flat.device).view(terms.shape[:-1])]

        return of_pair

    def _by_rows(
        self, distance: Float[Tensor, "*s"], position: Float[Tensor, "*s"], dtype: torch.dtype
    ) -> Float[Tensor, "*s h"]:
        """`_of`, on the CPU without gradients a few rows of keys at a time, so that hidden units stay in the cache."""
        plain = plain_on_cpu(distance) and not exporting() and not wants_gradient(distance, *self.parameters())
        if not plain or distance.numel() <= PAIRS or distance.ndim < 2 or position.shape[-1] != 1:
            return self._of(distance, position, dtype)
        position = position.expand(*distance.shape[:-1], 1)
        rows = max(1, PAIRS // distance.shape[-1])
        pairs = zip(distance.flatten(0, -2).split(rows), position.flatten(0, -2).split(rows), strict=True)
        terms: Tensor = torch.cat([self._of(part, seen_from, dtype) for part, seen_from in pairs])
        return terms.unflatten(0, distance.shape[:-1])  # type: ignore[no-any-return]

    def _of(
        self, distance: Float[Tensor, "*s"], position: Float[Tensor, "*s"], dtype: torch.dtype
    ) -> Float[Tensor, "*s h"]:
        """f of the distances, seen from queries at these positions."""
        with full_precision(self.c):
            ratio = (self._psi(distance) / (self._psi(torch.maximum(position, self.threshold())) + 1e-6)).to(dtype)
            hidden = (ratio[..., None] * self.inner[0].to(dtype) + self.inner[1].to(dtype)).relu()
            return hidden @ self.outer.to(dtype).T + self.offset.to(dtype)

    def _psi(self, x: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
        return torch.log1p(self.c.double().abs() * x)

    def threshold(self) -> Float[Tensor, "1"]:
        """L, in fp64."""
        return (self.multiplier.double() * self.first_length).abs()

    def at_length(self, n: int) -> PositionalEncoding:
        """The bias of the distance alone where all of a request's positions 0 … n-1 are within L, else this encoding.

        It reads L, so on a GPU it waits for it. It holds this module's parameters: ask again after they were trained.
        """
        return WithinThreshold(self) if n - 1 <= float(self.threshold().detach()) else self

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> FIRE:
        part = FIRE(**{**self.configuration, "n_heads": stop - start}).to(self.outer)
        for name, target in part.named_parameters():
            source = getattr(self, name)
            target.copy_(source[start:stop] if name in ("outer", "offset") else source)
        return part


class WithinThreshold(DistanceBias):
    """FIRE for requests whose positions are all within its threshold: f(ψ(|distance|) / ψ(L))."""

    def __init__(self, whole: FIRE) -> None:
        super().__init__(whole=whole)
        self.whole = whole

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        return self.whole._of(delta.abs().double(), self.whole.threshold(), torch.float64).T

    def heads(self, start: int, stop: int) -> WithinThreshold:
        return WithinThreshold(self.whole.heads(start, stop))
