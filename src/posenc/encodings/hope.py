"""HoPE (high-frequency): pairs that cannot finish a turn within the trained length keep still.

    ω_i = base^(-2i/d)  where 2π/ω_i <= L,   0 for all others

Chen et al. 2024, "HoPE: A Novel Positional Encoding Without Long-Term Decay for Enhanced Context Awareness and
Extrapolation". Two other methods are called HoPE: a hyperbolic one and one for videos.
"""

from __future__ import annotations

import math

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def hope(d_head: int, *, trained_length: int = 2048, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE whose slow pairs are independent of the position.

    d_head          channels of a head, even
    trained_length  L, in positions
    base            of the frequencies
    layout          which channels make a pair

    Raises ValueError where no pair finishes a turn, and for sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    kept = [1.0 if 2 * math.pi / w <= trained_length else 0.0 for w in trained]
    if not any(kept):
        raise ValueError(f"trained_length: no pair turns once in {trained_length} positions, expected at least 7")
    return RoPE(d_head, frequencies=frequencies.multiplied(trained, kept, "hope"), layout=layout)


ENTRY = Entry(
    name="hope",
    class_name="RoPE",
    builder="hope",
    title=Words("HoPE", "高频旋转"),
    kind="rotated",
    published="2024-10",
    formula="R(p)q, ω_i = 0 where 2π/ω_i > L",
    also_called=(
        "hope_hf",
        "high_frequency_rope",
        "high-frequency rotary position encoding",
    ),
    used_by=(
        Words(
            "research: language models by its authors",
            "研究：作者的语言模型",
        ),
    ),
    source="Chen et al. 2024, arXiv 2410.21216",
    idea=Words(
        "Pairs whose wavelength exceeds the trained length are replaced by channels without a position; only high "
        "frequencies remain. So no angle occurs beyond training that was not seen in it. It must be trained so "
        "from the start.",
        "波长超过训练长度的通道对改为不含位置的通道，只保留高频。因此超出训练长度后不会出现没见过的角度。需要从头这"
        "样训练。",
    ),
    latex=r"(R(i)\, q_i) \cdot (R(j)\, k_j), \quad \omega_n = b^{-2n/d} \; (2\pi/\omega_n \le L), \quad \omega_n "
    r"= 0 \; (2\pi/\omega_n > L)",
    breaks=Words(
        "Without slow pairs, distances of many tokens are told only by sums of fast waves, which nearly repeat.",
        "没有慢的通道对，远距离只能靠快波之和区分，而快波几乎会重复。",
    ),
    options={
        "trained_length": "L，以位置计",
    },
)
