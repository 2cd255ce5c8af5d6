"""YaRN: fast pairs keep their frequency, slow pairs are interpolated, a ramp joins them, and attention is sharpened.

    ω' = ω·(1-γ) + ω/s·γ,   γ rises from 0 to 1 between the pairs that turn 32 times and once in the trained length
    cos and sin are multiplied by 0.1·ln s + 1

Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", sections 3.2 to 3.4.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def yarn(
    d_head: int,
    *,
    factor: float = 16.0,
    original_length: int = 4096,
    base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.yarn`; the defaults are those of the paper's Llama 2 with 64k tokens.

    d_head           channels of a head, even
    factor           s: the length wanted over the trained one
    original_length  the trained length, in positions
    base             of the trained frequencies
    beta_fast        pairs that turn at least as often within original_length are kept
    beta_slow        pairs that turn at most as often are divided by factor
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    scaled = frequencies.yarn(trained, factor, original_length, beta_fast=beta_fast, beta_slow=beta_slow)
    return RoPE(d_head, frequencies=scaled, layout=layout)


ENTRY = Entry(
    name="yarn",
    class_name="RoPE",
    builder="yarn",
    title=Words("YaRN", "YaRN 分频插值"),
    kind="scaled",
    published="2023-08",
    formula="ω' = (1-γ)ω + γω/s, cos and sin × (0.1 ln s + 1)",
    also_called=("yarn_scaling", "YaRNScaledRotaryEmbedding", "yet another rope extension"),
    used_by=("gpt-oss", "DeepSeek-V3", "OLMo 3", Words("Qwen (beyond 32k tokens)", "Qwen（超过 32k 词元时）")),
    source="Peng et al. 2023, arXiv 2309.00071, sections 3.2 to 3.4",
    idea=Words(
        "Pairs of channels that turn many times within the trained length keep their frequency; pairs that turn "
        "less than once are slowed down as position interpolation does it; a ramp joins both. Scores are made "
        "sharper by a factor that grows with the logarithm of the extension. It works without training for small "
        "factors, and with little training for large ones.",
        "在训练长度内转很多圈的通道对保持原频率，转不满一圈的像位置插值那样放慢，二者之间线性过渡。注意力分数还乘以"
        "一个随扩展倍数的对数增长的系数，使分布更尖锐。倍数小时无需训练，倍数大时只需少量训练。",
    ),
    latex=r"\omega' = (1 - \gamma)\,\omega + \gamma\,\frac{\omega}{s}, \quad \cos, \sin \times (0.1 \ln s + 1)",
    breaks=Words(
        "A fixed factor changes short texts as well. Beyond factor × the trained length it breaks as RoPE does.",
        "固定的倍数也会改变短文本。超过“倍数 × 训练长度”后与 RoPE 一样失效。",
    ),
    code="jquesnelle/yarn",
    options={
        "beta_fast": "在 original_length 内至少转这么多圈的通道对不变",
        "beta_slow": "至多转这么多圈的通道对除以 factor",
    },
)
