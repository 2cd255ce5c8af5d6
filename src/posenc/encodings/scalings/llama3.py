"""Llama 3.1's scaling: by the wavelength of each pair, measured in trained lengths.

    t = L·ω/2π turns:   t < 1: ω/s     t > 4: ω     between: ((1-u)/s + u)·ω,  u = (t-1)/(4-1)

Llama Team 2024, "The Llama 3 Herd of Models", section 3.4.2, and the code released with Llama 3.1.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def llama3(
    d_head: int,
    *,
    factor: float = 8.0,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    trained_length: int = 8192,
    base: float = 500000.0,
    layout: Layout = "half",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.llama3`; the defaults are those of Llama 3.1.

    d_head            channels of a head, even
    factor            s: 8 in Llama 3.1, 32 in Llama 3.2
    low_freq_factor   pairs that turn less often in trained_length are divided by factor
    high_freq_factor  pairs that turn more often are kept
    trained_length    the trained length L, in positions
    base              of the trained frequencies
    layout            which channels make a pair; Meta's code interleaves, models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    scaled = frequencies.llama3(trained, factor, low_freq_factor, high_freq_factor, trained_length)
    return RoPE(d_head, frequencies=scaled, layout=layout)
