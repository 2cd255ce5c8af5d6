"""M-RoPE: time, height and width each read a band of one spectrum.

    ω_i = base^(-2i/d);   the first d/8 pairs read time, the next 3d/16 height, the last 3d/16 width

Wang et al. 2024, "Qwen2-VL", section 2.1. Text has the same number on all three axes: posenc.positions_by("mrope_ids", …).
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def mrope(d_head: int, *, sizes: Sequence[int] | None = None, base: float = 1000000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.sections`.

    d_head  channels of a head, even
    sizes   pairs of time, height and width; (16, 24, 24) of 64 in Qwen2-VL, in this proportion unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not add up to the pairs of a head.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    if sizes is None:
        checks.whole(6, d_head=d_head)
        side = max(3 * pairs // 8, 1)
        sizes = (pairs - 2 * side, side, side)
    return RoPE(d_head, frequencies=frequencies.sections(frequencies.rotary(d_head, base), sizes), layout=layout)
