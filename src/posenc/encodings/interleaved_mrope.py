"""Interleaved M-RoPE: time, height and width take pairs in turn, so that each sees fast and slow ones.

    pair 3n + 1 reads height, 3n + 2 width, while their sections last; all others read time

Bai et al. 2025, "Qwen3-VL", section 2, and its code.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def interleaved_mrope(
    d_head: int, *, sizes: Sequence[int] | None = None, base: float = 5000000.0, layout: Layout = "half"
) -> RoPE:
    """RoPE with the frequencies of `frequencies.interleaved_sections`.

    d_head  channels of a head, even, from 6
    sizes   pairs of time, height and width; (24, 20, 20) of 64 in Qwen3-VL, in this proportion unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not add up to the pairs of a head.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    if sizes is None:
        checks.whole(6, d_head=d_head)
        side = max(5 * pairs // 16, 1)
        sizes = (pairs - 2 * side, side, side)
    spectrum = frequencies.rotary(d_head, base)
    return RoPE(d_head, frequencies=frequencies.interleaved_sections(spectrum, sizes), layout=layout)
