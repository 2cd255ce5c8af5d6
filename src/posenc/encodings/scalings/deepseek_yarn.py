"""YaRN as DeepSeek's models have it: its magnitude goes to the softmax scale, of all channels.

    ω' as in YaRN, cos and sin as they are,   softmax scale = (0.1·m·ln s + 1)²/√d_head

DeepSeek-AI 2024, "DeepSeek-V2", section 3.1.4, and the code of DeepSeek-V3, whose m (mscale and mscale_all_dim) is 1.
"""

from __future__ import annotations

import math

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def deepseek_yarn(
    d_head: int,
    *,
    factor: float = 40.0,
    trained_length: int = 4096,
    mscale: float = 1.0,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.yarn` and the softmax scale of `frequencies.softmax_mscale`.

    d_head          channels of a head, even
    factor          s: the length wanted over the trained one; 40 in DeepSeek-V2 and V3
    trained_length  the trained length, in positions
    mscale          m: 1 in DeepSeek-V3, 0.707 in V2
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    if math.isinf(frequencies.mscale_of(factor, mscale) * frequencies.mscale_of(factor, mscale)):
        raise ValueError(f"mscale: the softmax scale grows beyond float64, got {mscale:g}")
    trained = frequencies.rotary(d_head, base)
    scaled = frequencies.yarn(trained, factor, trained_length, mscale=mscale, mscale_all_dim=mscale)
    return RoPE(d_head, frequencies=frequencies.softmax_mscale(scaled, factor, mscale), layout=layout)
