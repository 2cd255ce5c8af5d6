"""Shifted RoPE (STRING): far tokens are read at distances that training has often seen.

    near, i - j < S      R(i)q · R(j)k
    far                  R(i - S + W)q · R(j)k               i - j - S + W positions away

An et al. 2024, "Why Does the Effective Context Length of LLMs Fall Short?", figure 5: the largest S distances, which
training rarely shows, are left out; those below them take their place, and W more keeps the near tokens apart from them.
Cayley-STRING (cayley_string.py) is another method.
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


class ShiftedRoPE(RegionalRoPE):
    """RoPE of the distance i - j below `shift`, and of i - j - shift + local from there on.

    d_head       channels of a head
    shift        S, the distances that are left out; 43 253, 0.33 of Llama 3.1's length, in the authors' code
    local        W, up to shift
    base         of the frequencies
    layout       which channels make a pair
    frequencies  other frequencies, as RoPE takes them

    No parameters and nothing to train: it replaces the RoPE of a trained model. Time and memory: see regions.py.
    Raises ValueError for a `local` above `shift`, which would move far tokens further away.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        shift: int = 43253,
        local: int = 128,
        base: float | None = None,
        layout: Layout = "interleaved",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(shift=shift)
        checks.whole(0, local=local)
        if local > shift:
            raise ValueError(f"local: expected a number up to shift={shift}, got {local}")
        super().__init__(d_head, {"shift": shift, "local": local}, base, layout, frequencies)
        self.shift, self.local = shift, local

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        far = (query - self.shift)[:, :, None] >= key[:, None, :]
        return [Region(query - (self.shift - self.local), None, far)]
