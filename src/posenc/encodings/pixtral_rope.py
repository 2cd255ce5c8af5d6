"""Pixtral's 2-D RoPE: rows take every second frequency, columns the others.

    ω_i = base^(-2i/d);   R(y) on ω_0, ω_2, ω_4, …,   R(x) on ω_1, ω_3, ω_5, …

Agrawal et al. 2024, "Pixtral 12B", section 2.2.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def pixtral_rope(d_head: int, *, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.strided`: one spectrum dealt out to rows and columns.

    d_head  channels of a head, a multiple of 4
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    checks.multiple(4, d_head=d_head)
    return RoPE(d_head, frequencies=frequencies.strided(frequencies.rotary(d_head, base)), layout=layout)
