"""Position interpolation: positions are divided by the extension, so that all of them fall into the trained range.

    ω' = ω/s   which is   p' = p/s

Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation", section 2.3.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def linear(d_head: int, *, factor: float = 16.0, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with the frequencies of `frequencies.linear`; 16 takes the paper's models from 2048 to 32768 tokens.

    d_head           channels of a head, even
    factor           s: the length wanted over the trained one
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.linear(frequencies.rotary(d_head, base), factor), layout=layout)


ENTRY = Entry(
    name="linear",
    class_name="RoPE",
    builder="linear",
    title=Words("Position interpolation", "位置插值"),
    kind="scaled",
    published="2023-06",
    formula="ω' = ω/s",
    also_called=(
        "position_interpolation",
        "positional_interpolation",
        "PI",
        "linear_scaling",
        "LinearScalingRotaryEmbedding",
        "superhot",
    ),
    used_by=(
        Words("Gemma 3 (full-attention layers, factor 8)", "Gemma 3（全局注意力层，倍数 8）"),
        "LongChat",
        "Vicuna 16k",
    ),
    source="Chen et al. 2023, arXiv 2306.15595, section 2.3",
    idea=Words(
        "All positions are divided by the factor by which the context grows, so the model meets no angle that it "
        "has not seen. Neighbouring tokens come closer together in angle, which a short fine-tuning must learn to "
        "tell apart. It was the first scaling of RoPE.",
        "所有位置除以上下文扩展的倍数，模型因此不会遇到训练中没有见过的角度。相邻词的角度差变小，需要少量微调才能重"
        "新分辨。它是最早的 RoPE 缩放方法。",
    ),
    latex=r"\omega' = \frac{\omega}{s}",
    breaks=Words(
        "Without fine-tuning it breaks quickly: in our text task RoPE rescaled so, with no further training, "
        "reaches 4.10 bits at 4 × the trained length, YaRN 2.74.",
        "不微调很快失效：在我们的文本任务上，不再训练时 4 倍训练长度处为 4.10 比特，YaRN 为 2.74。",
    ),
)
