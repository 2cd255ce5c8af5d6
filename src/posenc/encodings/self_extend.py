"""Self-Extend: near tokens keep their distance, far ones are counted in groups, so that no distance is new to the model.

    near, i - j < w      R(i)q · R(j)k
    far                  R(⌊i/G⌋ + w - ⌊w/G⌋)q · R(⌊j/G⌋)k

Jin et al. 2024, "LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning", section 3. The authors' code floors w/G
when it decodes and leaves the fraction when it prefills: both are the same where G divides w.
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
    from posenc.support.shapes import Num


class SelfExtend(RegionalRoPE):
    """RoPE up to w positions, from there on groups of G positions: reaches (L - w)·G + w positions of a model trained on L.

    d_head       channels of a head
    group        G, 8 in the authors' code
    window       w, 1024 in the authors' code: fewer than the positions that the model was trained on
    base         of the frequencies
    layout       which channels make a pair
    frequencies  other frequencies, as RoPE takes them

    No parameters and nothing to train: it replaces the RoPE of a trained model. Time and memory: see regions.py.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        group: int = 8,
        window: int = 1024,
        base: float | None = None,
        layout: Layout = "half",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(group=group, window=window)
        super().__init__(d_head, {"group": group, "window": window}, base, layout, frequencies)
        self.group, self.window = group, window
        self.traits = self.traits - {"shift_invariant"}  # groups begin at multiples of G

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        far = (query - self.window)[:, :, None] >= key[:, None, :]
        start = self.window - self.window // self.group
        return [Region(query // self.group + start, key // self.group, far)]
