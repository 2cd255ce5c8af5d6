"""HoPE for videos: VideoRoPE whose slowest pairs, those of time, do not turn at all.

    ω_i = base^(-2i/d);   pairs 0, 2, 4, … read height, 1, 3, 5, … width, the last d/8 keep still

Li et al. 2025, "HoPE: Hybrid of Position Embedding for Length Generalization in Vision-Language Models", section 4, as the
code of Huang et al. 2025 has it (JJJYmmm/Multimodal-RoPEs, freq_allocation/hope.py). In training the numbers from frame to
frame are drawn: posenc.positions_by("videorope_ids", …, form="code", spacing=random.choice((0.5, 0.75, 1, 1.25, 1.5))).
"""

from __future__ import annotations

from dataclasses import replace

from posenc.encodings.rope import RoPE
from posenc.encodings.videorope import videorope
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def hybrid_hope(d_head: int, *, time: int | None = None, base: float = 1000000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `videorope`, 0 for those of time; reads (time, height, width).

    d_head  channels of a head, even
    time    pairs that keep still; a quarter of all unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for a number of pairs that a head does not have.
    """
    dealt = videorope(d_head, time=time, order=(1, 2), base=base, layout=layout).frequencies
    values = tuple(0.0 if axis == 0 else value for value, axis in zip(dealt, dealt.axes, strict=True))
    return RoPE(
        d_head,
        frequencies=replace(dealt, values=values, values_from=f"{dealt.values_from}, time kept still"),
        layout=layout,
    )
