"""Rectified RoPE: no distance is larger than a window, or none grows at full speed beyond it.

    near, i - j < w      R(i)q · R(j)k
    far                  R(w)q · k                               ReRoPE: every far token is w positions away
    far, leaky           R(w + (i - w)/f)q · R(j/f)k             Leaky ReRoPE: w + (i - j - w)/f positions away

Su 2023, "Rectified Rotary Position Embeddings" (kexue.fm/archives/9708). The author's patches also multiply the query at
position i by max(1, ln(i + 1) / ln(trained length)): here that is Stack(ReRoPE(…), create("log_n", …)).
LM-Infinite has the same ceiling on distances.
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


class ReRoPE(RegionalRoPE):
    """RoPE of the distance min(i - j, w), or of w + (i - j - w)/leak beyond w.

    d_head       channels of a head
    window       w, 1024 in the author's experiments with a model trained on 4096 positions
    leak         f, a number above 1; None: distances stop at w
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
        window: int = 1024,
        leak: float | None = None,
        base: float | None = None,
        layout: Layout = "half",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(window=window)
        if leak is not None:
            checks.positive(leak=leak)
        super().__init__(d_head, {"window": window, "leak": leak}, base, layout, frequencies)
        self.window, self.leak = window, leak

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        far = (query - self.window)[:, :, None] >= key[:, None, :]
        if self.leak is None:
            return [Region((query * 0 + self.window).double(), (key * 0).double(), far)]
        return [Region(self.window + (query.double() - self.window) / self.leak, key.double() / self.leak, far)]
