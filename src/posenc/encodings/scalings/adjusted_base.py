"""Adjusted base frequency (ABF): RoPE with a larger base, trained on.

    ω_i = 500 000^(-2i/d)

Xiong et al. 2023, "Effective Long-Context Scaling of Foundation Models", section 4.1; Code Llama takes 1 000 000.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def adjusted_base(d_head: int, *, base: float = 500000.0, layout: Layout = "half") -> RoPE:
    """RoPE with another base than 10 000.

    d_head  channels of a head, even
    base    the slowest pair turns once in about 2π·base positions
    layout  which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.rotary(d_head, base), layout=layout)
