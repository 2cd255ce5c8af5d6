"""Proportional RoPE (p-RoPE): the slowest pairs keep still, all others turn as in RoPE.

    ω_i = base^(-2i/d)  for i < ⌊f·d/2⌋,   0 for all others

Barbero et al. 2024, "Round and Round We Go! What makes Rotary Positional Encodings useful?", section 6; Gemma 4.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def proportional(d_head: int, *, fraction: float = 0.75, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.proportional`.

    d_head    channels of a head, even
    fraction  how much of the pairs turns; 0.75 was best in the paper, Gemma 4 takes 0.25 with a base of 1 000 000
    base      of the frequencies
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.proportional(d_head, base, fraction), layout=layout)
