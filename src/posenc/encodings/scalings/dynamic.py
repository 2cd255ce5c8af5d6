"""Dynamic NTK: the base grows with the length of the request, and requests within the trained length keep it.

    base' = base·(s·n/L - (s-1))^(d/(d-2))   for a request of n > L tokens

A post (emozilla, June 2023); Peng et al. 2023, "YaRN", section 3.3; transformers' rope_type "dynamic".
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def dynamic(
    d_head: int,
    *,
    factor: float = 2.0,
    trained_length: int = 2048,
    length: int = 1,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.dynamic` at `length`; `at_length(n)` is the one of a request of n tokens.

    d_head           channels of a head, even, from 4
    factor           s: how steeply the base grows
    trained_length   L, in positions
    length           tokens of the request
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    family = frequencies.dynamic(frequencies.rotary(d_head, base), factor, trained_length)
    return RoPE(d_head, frequencies=family, length=length, layout=layout)


ENTRY = Entry(
    name="dynamic",
    class_name="RoPE",
    builder="dynamic",
    title=Words("Dynamic NTK", "动态 NTK"),
    kind="scaled",
    by_length=True,
    published="2023-06",
    formula="base' = base·(s·n/L - (s-1))^(d/(d-2))",
    also_called=(
        "dynamic_ntk",
        "DynamicNTKScalingRotaryEmbedding",
        "dynamic_scaling",
    ),
    used_by=(
        "InternLM2",
        Words("Qwen (the first)", "初代 Qwen"),
    ),
    example="""\
encoding = posenc.create("dynamic", d_head=64, trained_length=2048).at_length(8192)
at = encoding.prepare(posenc.Positions.arange(batch, length))
out = posenc.attend(q, k, v, encoding, at)
""",
    source="emozilla 2023, a post; Peng et al. 2023, arXiv 2309.00071, section 3.3",
    idea=Words(
        "NTK scaling by as much as a request needs: short requests are computed as trained, longer ones with a "
        "larger base. A request must keep one base for all its cached keys, so it asks for its length once. Texts "
        "within the trained length do not change at all.",
        "按请求的长度做 NTK 缩放：短请求与训练时完全相同，越长的请求底数越大。一个请求缓存的所有键必须使用同一个底"
        "数，因此只在开始时按长度取一次。训练长度以内的文本完全不变。",
    ),
    latex=r"b' = b \left( \frac{s\,n}{L} - (s - 1) \right)^{d/(d-2)}",
    breaks=Words(
        "Keys cached at one length are wrong at another: a request has to know its largest length at the start.",
        "按一种长度缓存的键在另一种长度下是错的：请求必须一开始就知道自己的最大长度。",
    ),
    differs=Words(
        "`at_length(n)` is asked once for a request. transformers changes the base while a text grows and keeps "
        "the old keys.",
        "每个请求只问一次 `at_length(n)`；transformers 在文本变长时改变底数，却保留旧的键。",
    ),
    code="huggingface/transformers",
    options={
        "d_head": "每个头的通道数，偶数，至少 4",
        "trained_length": "L，以位置计",
        "length": "请求的词数",
        "factor": "s：底数增长的快慢",
    },
)
