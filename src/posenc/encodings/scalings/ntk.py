"""NTK-aware scaling: a larger base, so that the slowest pair is interpolated and the fastest hardly changes.

    base' = base·s^(d/(d-2))

A post of its author (bloc97, June 2023); Peng et al. 2023, "YaRN", section 3.1. HunYuan calls the same number alpha.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def ntk(d_head: int, *, factor: float = 4.0, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.ntk`.

    d_head           channels of a head, even, from 4
    factor           s: how many times slower the slowest pair turns
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.whole(4, d_head=d_head)
    return RoPE(d_head, frequencies=frequencies.ntk(frequencies.rotary(d_head, base), factor), layout=layout)
