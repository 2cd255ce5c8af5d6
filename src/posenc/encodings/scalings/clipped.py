"""Clipped RoPE: the slowest pairs fade out instead of leaving the trained range.

    ω'_i = ω_i·(1 + cos(πk/(n-1)))/2   for the slowest n pairs, k = 0 … n-1

arXiv 2602.05258, where it is named CoPE; the authors' code has n = 20. It has nothing to do with contextual positions.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def clipped(d_head: int, *, n: int = 20, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.clipped`.

    d_head  channels of a head, even
    n       the slowest pairs, which fade out; all where there are fewer
    base    of the trained frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.clipped(frequencies.rotary(d_head, base), n), layout=layout)
