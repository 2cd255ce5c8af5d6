"""LM-Infinite: a query sees the nearest tokens and the very first ones, at distances that have a ceiling.

    near, i - j < n       R(i)q · R(j)k
    far and j < s         R(c)q · k           the first s tokens, c positions away
    far otherwise         not seen

Han et al. 2024, "LM-Infinite: Zero-Shot Extreme Length Generalization for Large Language Models", section 4:
a Λ-shaped mask and a ceiling on distances.
Legend: b batch, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from posenc.encodings.bases.regions import RegionalRoPE
from posenc.frequencies import ByLength
from posenc.frequencies.layouts import Layout
from posenc.structure import Region
from posenc.support import checks
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Num


class LMInfinite(RegionalRoPE):
    """RoPE for the nearest tokens; the first ones stand at the ceiling; nothing else is seen.

    d_head       channels of a head
    near         n, tokens that are seen at their own distance; the paper takes the training length
    starting     s, positions from 0 on that are always seen; 10 … 100 in the paper
    ceiling      c, the distance at which far starting tokens stand; None: `near`
    base         of the frequencies
    layout       which channels make a pair
    frequencies  other frequencies, as RoPE takes them

    No parameters and nothing to train: it replaces the RoPE of a trained model. In eager code on the CPU blocks of
    hidden pairs are not computed; elsewhere time and memory are those of regions.py. A cache may drop what is neither near
    nor starting.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        near: int = 4096,
        starting: int = 10,
        ceiling: int | None = None,
        base: float | None = None,
        layout: Layout = "half",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(near=near)
        checks.whole(0, starting=starting)
        if ceiling is not None:
            checks.whole(ceiling=ceiling)
        super().__init__(d_head, {"near": near, "starting": starting, "ceiling": ceiling}, base, layout, frequencies)
        self.near, self.starting, self.ceiling = near, starting, near if ceiling is None else ceiling
        self.traits = self.traits - {"shift_invariant"}  # the starting tokens are known by their positions

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        return [Region((query * 0 + self.ceiling).double(), (key * 0).double(), self._far(query, key))]

    def _hidden(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> Bool[Tensor, "b i j"]:
        return self._far(query, key) & (key[:, None, :] >= self.starting)

    def _far(self, query: Tensor, key: Tensor) -> Bool[Tensor, "b i j"]:
        return (query - self.near)[:, :, None] >= key[:, None, :]
