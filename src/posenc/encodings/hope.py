"""HoPE (high-frequency): pairs that cannot finish a turn within the trained length keep still.

    ω_i = base^(-2i/d)  where 2π/ω_i <= L,   0 for all others

Chen et al. 2024, "HoPE: A Novel Positional Encoding Without Long-Term Decay for Enhanced Context Awareness and
Extrapolation". Two other methods are called HoPE: a hyperbolic one and one for videos.
"""

from __future__ import annotations

import math

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def hope(d_head: int, *, trained_length: int = 2048, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE whose slow pairs are independent of the position.

    d_head          channels of a head, even
    trained_length  L, in positions
    base            of the frequencies
    layout          which channels make a pair

    Raises ValueError where no pair finishes a turn, and for sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    kept = [1.0 if 2 * math.pi / w <= trained_length else 0.0 for w in trained]
    if not any(kept):
        raise ValueError(f"trained_length: no pair turns once in {trained_length} positions, expected at least 7")
    return RoPE(d_head, frequencies=frequencies.multiplied(trained, kept, "hope"), layout=layout)
