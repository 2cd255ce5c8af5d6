"""DINOv3's 2-D RoPE: patch centres between -1 and 1, and frequencies that count turns.

    angle = 2π·c·100^(-4j/d),   c = (index + ½)/n·2 - 1 for rows, then for columns

Siméoni et al. 2025, "DINOv3", section 3.2, and their code. Positions: posenc.positions_by("patch_centres", …).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def dinov3_rope(d_head: int, *, base: float = 100.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.axial(in_turns(rotary(d_head/2, base)))`.

    d_head  channels of a head, a multiple of 4
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    checks.multiple(4, d_head=d_head)
    per_axis = frequencies.in_turns(frequencies.rotary(d_head // 2, base))
    return RoPE(d_head, frequencies=frequencies.axial(per_axis), layout=layout)
