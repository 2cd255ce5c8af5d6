"""BiPE: a learned vector for a token's index within its segment, and RoPE for the number of the segment.

    x + table[n],   (R(s) q)·(R(s') k)        n the index within the segment, s and s' numbers of segments

He et al. 2024, "Two Stones Hit One Bird: Bilevel Positional Encoding for Better Length Extrapolation" (BiPE-RoPE), and the
authors' code. Positions are (n, s), which posenc.positions_by("bipe_ids", …) makes of the ends of sentences.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.combined import Stack
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def bipe(d_model: int, d_head: int, max_positions: int, *, base: float = 10000.0, layout: Layout = "half") -> Stack:
    """Stack of a table, which reads the first coordinate of a token, and RoPE, which reads the second.

    d_model        channels of the table
    d_head         channels of a head, even
    max_positions  rows of the table: tokens of the longest segment; 1024 in the authors' models
    base           of RoPE's frequencies
    layout         which channels make a pair

    Parameter: the table [max_positions, d_model]. Raises ValueError for an index beyond the table, a device assert off the
    CPU, and for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    of_segments = frequencies.cycling(frequencies.rotary(d_head, base), (1,))
    within = LearnedAxes(d_model, (max_positions,), axes=2, reads=(0,))
    return Stack(within, RoPE(d_head, frequencies=of_segments, layout=layout))
