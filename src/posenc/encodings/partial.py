"""Partial RoPE: the first channels of a head turn, the rest keeps still.

    R(p) on the first ⌊f·d⌋ channels, with ω_i = base^(-2i/⌊f·d⌋)

Wang and Komatsuzaki 2021 (GPT-J, 64 of 256 channels); Black et al. 2022, "GPT-NeoX-20B", section 2.1 (a quarter).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def partial(d_head: int, *, fraction: float = 0.25, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.partial`; the defaults are those of GPT-NeoX.

    d_head    channels of a head
    fraction  how much of them turns: partial_rotary_factor or rotary_pct of a configuration
    base      of the frequencies
    layout    which channels make a pair; GPT-J interleaves

    Raises ValueError where the channels that turn are not an even number.
    """
    return RoPE(d_head, frequencies=frequencies.partial(d_head, base, fraction), layout=layout)
