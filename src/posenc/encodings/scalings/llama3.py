"""Llama 3.1's scaling: by the wavelength of each pair, measured in trained lengths.

    t = L·ω/2π turns:   t < 1: ω/s     t > 4: ω     between: ((1-u)/s + u)·ω,  u = (t-1)/(4-1)

Llama Team 2024, "The Llama 3 Herd of Models", section 3.4.2, and the code released with Llama 3.1.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def llama3(
    d_head: int,
    *,
    factor: float = 8.0,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    original_length: int = 8192,
    base: float = 500000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.llama3`; the defaults are those of Llama 3.1.

    d_head            channels of a head, even
    factor            s: 8 in Llama 3.1, 32 in Llama 3.2
    low_freq_factor   pairs that turn less often in original_length are divided by factor
    high_freq_factor  pairs that turn more often are kept
    original_length   the trained length L, in positions
    base              of the trained frequencies
    layout            which channels make a pair; Meta's code interleaves, models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    scaled = frequencies.llama3(trained, factor, low_freq_factor, high_freq_factor, original_length)
    return RoPE(d_head, frequencies=scaled, layout=layout)


ENTRY = Entry(
    name="llama3",
    class_name="RoPE",
    builder="llama3",
    title=Words("Llama 3 scaling", "Llama 3 缩放"),
    kind="scaled",
    published="2024-07",
    formula="ω' = ω/s, ω, or between, by L·ω/2π",
    also_called=(
        "llama3_scaling",
        "llama-3.1",
        "rope_scaling_llama3",
    ),
    used_by=(
        "Llama 3.1",
        "Llama 3.2",
        "Llama 3.3",
    ),
    source="Llama Team 2024, arXiv 2407.21783, section 3.4.2, and the code of Llama 3.1",
    idea=Words(
        "Pairs with wavelengths beyond the trained length are slowed down by the whole factor, pairs that turn "
        "more than four times within it are kept, and those between are blended. It is like YaRN without "
        "sharpening, blended by turns instead of pairs. Llama 3.1 was trained on with it.",
        "波长超过训练长度的通道对按整个倍数变慢，训练长度内转四圈以上的保持不变，介于其间的按圈数混合。它像没有尖锐"
        "化的 YaRN，只是按圈数而不是按序号过渡。Llama 3.1 用它继续训练。",
    ),
    latex=r"\omega' = \begin{cases} \omega / s & t < 1 \\ \left(\frac{1-u}{s} + u\right) \omega & 1 \le t \le 4 "
    r"\\ \omega & t > 4 \end{cases}, \quad t = \frac{L\omega}{2\pi}, \; u = \frac{t - 1}{3}",
    breaks=Words(
        "Extended too far, near tokens move together in angle and quality falls even within the trained length.",
        "扩展过多时，近处的词在角度上挤在一起，训练长度以内的质量也会下降。",
    ),
    code="meta-llama/llama-models",
    options={
        "layout": '哪些通道成对；Meta 的代码用相邻通道，公开的模型用 "half"',
        "factor": "s：Llama 3.1 为 8，Llama 3.2 为 32",
        "original_length": "训练长度 L，以位置计",
        "low_freq_factor": "在 original_length 内转的圈数更少的通道对除以 factor",
        "high_freq_factor": "转的圈数更多的通道对不变",
    },
)
