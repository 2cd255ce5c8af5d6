"""Resonance RoPE: every wavelength is rounded to a whole number of positions.

    ω' = 2π/round(2π/ω)

Wang et al. 2024, "Resonance RoPE: Improving Context Length Generalization of Large Language Models".
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def resonance(d_head: int, *, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.resonance`, which also goes on top of another scaling.

    d_head  channels of a head, even
    base    of the frequencies before rounding
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.resonance(frequencies.rotary(d_head, base)), layout=layout)
