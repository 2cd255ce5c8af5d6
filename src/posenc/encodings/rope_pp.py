"""RoPE++: beside the real part of the rotated product, which RoPE is, heads that have its imaginary part.

    real head        R(i)q · R(j)k                        = Re Σ q̃ k̃* e^(i(i - j)ω)
    imaginary head   R(i)R(-π/2)q · R(j)k                 = Im of the same sum

Liu et al. 2025, "Beyond Real: Imaginary Extension of Rotary Position Embeddings for Long-Context LLMs", section 3. Both
heads of a pair have the same query, key and value; a quarter turn of a query with weights of its own would be RoPE
again. So attention has two rotated queries for each query head, real then imaginary, and an output of twice as many
heads. With the query and key heads of a model with RoPE, the cache stays as it was (RoPE++EC); with half of both, the
heads do (RoPE++EH). Legend: b batch, h query heads, t tokens, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import Side
from posenc.encodings.rope import RoPE
from posenc.frequencies import ByLength
from posenc.frequencies.layouts import Layout
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support.checked import checked
from posenc.support.tensors import check_tokens, check_width, into, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class RoPEPlusPlus(RoPE):
    """RoPE with two rotated queries for each: as they are, and a quarter turn back. The output has 2·n_heads heads.

    d_head       channels of a head, even
    base         of the frequencies; 10 000 if left out
    layout       which channels make a pair
    frequencies  other frequencies, as RoPE takes them

    `Attention` makes its output projection as wide. No parameters. Time and cache as with RoPE of the same key heads, and
    twice as many query heads.
    """

    query_copies = 2

    @checked
    def __init__(
        self, d_head: int, *, base: float | None = None, layout: Layout = "interleaved", frequencies: ByLength | None = None
    ) -> None:
        super().__init__(d_head, base=base, layout=layout, frequencies=frequencies)
        self._configure(d_head=d_head, base=base, layout=layout, frequencies=frequencies)
        if self.rotary_dim != d_head:
            raise ValueError(f"frequencies: all {d_head} channels must turn, got pairs for {self.rotary_dim}")

    def structure(self) -> Rotation:
        return super().structure()._replace(both=None)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b n t d"]:
        """Keys as by RoPE; of queries two heads for each, real and imaginary."""
        if side != "query":
            return super().rotate(x, at, side, out)
        check_width(self, "d_head", x.shape[-1], self.d_head)
        check_tokens(self, x, at, axis=2)
        cos, sin = tables_at(self, at, x.dtype)
        real = rotate(x, cos, sin, self.layout)
        imaginary = rotate(x, sin, -cos, self.layout)  # the angle less π/2
        return into(torch.stack([real, imaginary], dim=2).flatten(1, 2), out)

    def at_length(self, n: int) -> RoPEPlusPlus:
        frequencies = self.configuration["frequencies"]
        if frequencies is None or frequencies.at_length(n) is frequencies:
            return self
        return RoPEPlusPlus(**{**self.configuration, "frequencies": frequencies.at_length(n)})
