"""VRoPE: pairs of channels read the distances of a patch from the four corners of its frame, in turn.

    ω_i = base^(-2i/d);   pair i reads coordinate i mod 4 of (y + x, y + x', y' + x, y' + x')
    y' = H - 1 - y, x' = W - 1 - x

Liu et al. 2025, "VRoPE: Rotary Position Embedding for Video Large Language Models", and the authors' code (vrope.py), whose
order of the corners this is. Positions: posenc.positions_by("vrope_ids", …).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def vrope(d_head: int, *, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.cycling` over four coordinates.

    d_head  channels of a head, even, from 8
    base    of the frequencies; that of the language model: 10 000 in Vicuna, 1 000 000 in Qwen2
    layout  which channels make a pair

    Raises ValueError for a head of fewer pairs than coordinates.
    """
    checks.even(d_head=d_head)
    if d_head < 8:
        raise ValueError(f"d_head: expected an even number from 8, a pair for each of four coordinates, got {d_head}")
    dealt = frequencies.cycling(frequencies.rotary(d_head, base), (0, 1, 2, 3))
    return RoPE(d_head, frequencies=dealt, layout=layout)
