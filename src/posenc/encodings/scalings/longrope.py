"""LongRoPE: a factor for each pair, found by search, one set for short requests and one for long ones.

    ω'_i = ω_i/λ_i,   cos and sin × √(1 + ln s/ln L)

Ding et al. 2024, "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", sections 3.2 and 3.3; Phi-3's code.
LongRoPE2 (Shang et al. 2025) searches the factors otherwise; its models read them in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def longrope(
    d_head: int,
    *,
    short_factor: Sequence[float] | None = None,
    long_factor: Sequence[float] | None = None,
    factor: float = 32.0,
    original_length: int = 4096,
    length: int = 1,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.longrope` at `length`; `at_length(n)` is the one of n tokens.

    d_head           channels of a head, even
    short_factor     a factor for each pair up to original_length; 1 for all unless given
    long_factor      a factor for each pair beyond; unless given NTK's, s^(2i/(d-2)), where the paper's search may start
    factor           s: the longest length over the trained one; 32 in Phi-3 with 128k tokens
    original_length  the trained length L, in positions
    length           tokens of the request
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    short = [1.0] * pairs if short_factor is None else short_factor
    long = [factor ** (i / max(pairs - 1, 1)) for i in range(pairs)] if long_factor is None else long_factor
    family = frequencies.longrope(frequencies.rotary(d_head, base), short, long, original_length, factor=factor)
    return RoPE(d_head, frequencies=family, length=length, layout=layout)


ENTRY = Entry(
    name="longrope",
    class_name="RoPE",
    builder="longrope",
    title=Words("LongRoPE", "LongRoPE 逐对缩放"),
    kind="scaled",
    by_length=True,
    published="2024-02",
    formula="ω'_i = ω_i/λ_i, cos and sin × √(1 + ln s/ln L)",
    also_called=(
        "long_rope",
        "longrope2",
        "su",
        "Phi3LongRoPEScaledRotaryEmbedding",
    ),
    used_by=(
        "Phi-3",
        "Phi-4-mini",
        "MiniCPM3",
    ),
    example="""\
encoding = posenc.create("longrope", d_head=64, original_length=4096).at_length(16384)
at = encoding.prepare(posenc.Positions.arange(batch, length, 16384 - length))
out = posenc.attend(q, k, v, encoding, at)
""",
    source="Ding et al. 2024, arXiv 2402.13753, sections 3.2 and 3.3; Phi-3's code",
    idea=Words(
        "Every pair has its own factor, found by a search that measures perplexity, and cosines and sines get a "
        "common factor. Short requests use another set of factors than long ones. The factors belong to a model; "
        "without them, those of NTK scaling stand in.",
        "每个通道对有自己的缩放系数，由以困惑度为目标的搜索得到；余弦和正弦再乘一个共同的系数。短请求与长请求使用"
        "不同的两组系数。系数属于具体的模型；不给出时，用 NTK 缩放的系数代替。",
    ),
    latex=r"\omega'_n = \frac{\omega_n}{\lambda_n}, \quad \cos, \sin \times \sqrt{1 + \frac{\ln s}{\ln L}}",
    breaks=Words(
        "Factors belong to one model and one length; a cache filled with the short set is wrong with the long one.",
        "系数属于某个模型和某个长度；用短文本系数填充的缓存不能与长文本系数一起用。",
    ),
    differs=Words(
        "The search for factors is not part of it; those of a model are read from its configuration.",
        "不包含系数的搜索；模型的系数从其配置读取。",
    ),
    code="microsoft/LongRoPE",
    options={
        "length": "请求的词数",
        "factor": "s：最大长度与训练长度之比；128k 词的 Phi-3 为 32",
        "original_length": "训练长度 L，以位置计",
        "short_factor": "original_length 以内每个通道对的系数；默认均为 1",
        "long_factor": "超过时每个通道对的系数；默认为 NTK 的 s^(2i/(d-2))，即论文搜索的起点",
    },
)
