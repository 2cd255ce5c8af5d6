"""MM-RoPE: in every eight pairs two read time, three height and three width, so that each axis has fast and slow ones.

    ω_i = base^(-2i/d);   pairs 8n … 8n+7 read t, t, y, x, y, x, y, x

Yuan et al. 2025, "Lumos-1", section 3, as the code of Huang et al. 2025 has it (JJJYmmm/Multimodal-RoPEs,
freq_allocation/mmrope.py). Lumos-1 multiplies the coordinates of patches, so that a latent frame counts as its pixels do.
"""

from __future__ import annotations

from dataclasses import replace

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked

AXES = (0, 0, 1, 2, 1, 2, 1, 2)


@checked
def mm_rope(d_head: int, *, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE whose pairs read (time, height, width) in groups of eight; reads (time, height, width).

    d_head  channels of a head, even, from 8
    base    of the frequencies
    layout  which channels make a pair
    """
    checks.even(d_head=d_head)
    checks.whole(8, d_head=d_head)
    plain = frequencies.rotary(d_head, base)
    axes = tuple(AXES[pair % len(AXES)] for pair in range(len(plain)))
    return RoPE(d_head, frequencies=replace(plain, axes=axes, values_from=f"{plain.values_from}, mm_rope"), layout=layout)
