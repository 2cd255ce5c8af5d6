"""RoPE whose distances are changed between tokens that are far apart: what Self-Extend, ReRoPE and others share.

    score(i, j) = R(a_i)q_i · R(b_j)k_j      in each region (a, b, which pairs); R(i)q_i · R(j)k_j elsewhere

Queries and keys are turned as by RoPE, and cached so. In eager code on the CPU the backend `regions` computes the product
of each pair once: time O(queries·keys·d), memory O(queries + keys). Elsewhere `bias` subtracts the product of the turned
vectors where a region says so, and adds that of the same vectors turned to a and b: one more product of all pairs for each
region, memory O(queries·keys).
Legend: b batch, h query heads, i query, j key, d d_head.
"""

from __future__ import annotations

import functools
import operator
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.encoding import BiasFn, scale_of
from posenc.encodings.rope import RoPE
from posenc.frequencies import ByLength, Frequencies
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions
from posenc.structure import Region, Regions
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, full_precision

if TYPE_CHECKING:
    from posenc.encoding import Side
    from posenc.support.shapes import Bool, Num


class RegionalRoPE(RoPE):
    """RoPE with regions of pairs at other distances: causal, one coordinate, the whole head turns.

    arguments                  of the method itself, shown in its configuration
    base, layout, frequencies  those of RoPE
    """

    reads_vectors = False

    def __init__(
        self, d_head: int, arguments: dict[str, Any], base: float | None, layout: Layout, frequencies: ByLength | None
    ) -> None:
        super().__init__(d_head, base=base, layout=layout, frequencies=frequencies)
        self._configure(d_head=d_head, **arguments, base=base, layout=layout, frequencies=frequencies)
        self.traits = self.traits | {"causal_only"}

    def at_length(self, n: int) -> RegionalRoPE:
        """The encoding for a request of n tokens: a new one if the frequencies depend on length, else this one."""
        frequencies = self.configuration["frequencies"]
        if frequencies is None or isinstance(frequencies, Frequencies):
            return self
        return type(self)(**{**self.configuration, "frequencies": frequencies.at_length(n)})

    @abstractmethod
    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        """Pairs that are turned to other positions, and those positions. No pair is in two regions."""

    def structure(self) -> Regions:  # type: ignore[override]
        return Regions(self.regions, super().structure())

    @checked
    def regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        """All pairs that are seen: first those at their own distance, then the others."""
        others = self._regions(query, key)
        unmoved = ~functools.reduce(operator.or_, [region.pairs for region in others])
        if (hidden := self._hidden(query, key)) is not None:
            unmoved = unmoved & ~hidden
            others = [region._replace(pairs=region.pairs & ~hidden) for region in others]
        return [Region(None, None, unmoved), *others]

    def _hidden(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> Bool[Tensor, "b i j"] | None:
        """Pairs whose query does not see the key; None if there are none."""
        return None

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_coords(self, at_q)
        check_coords(self, at_k)
        if q.dtype != k.dtype:
            raise TypeError(f"q, k: expected one dtype, got {q.dtype} and {k.dtype}")
        with full_precision(q):
            product = score = q @ k.transpose(-1, -2)
            for region in self._regions(at_q.coords, at_k.coords):
                far_q, far_k = self._moved(q, at_q, region.query, "query"), self._moved(k, at_k, region.key, "key")
                score = torch.where(region.pairs[:, None], far_q @ far_k.transpose(-1, -2), score)
            correction = (score - product) * scale_of(self, q.shape[-1])
        if (hidden := self._hidden(at_q.coords, at_k.coords)) is not None:
            correction = correction.masked_fill(hidden[:, None], float("-inf"))
        return lambda b, h, i, j: correction[b, h, i, j]

    def _moved(self, x: Tensor, at: Positions, to: Tensor | None, side: Side) -> Tensor:
        """Turned queries or keys, turned on to other positions."""
        if to is None:
            return x
        return RoPE.rotate(self, x, at.replaced(coords=to.double() - at.coords.double(), tables={}), side)
