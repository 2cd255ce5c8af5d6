"""Decoupled RoPE of latent attention: the last channels of a head turn, the first ones carry content only.

    q = [q_content | R(p) q_position],   k likewise

DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.3: 64 of 192 channels turn, and one key of them serves all heads.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def decoupled_rope(
    d_head: int, *, rotary_dim: int | None = None, base: float = 10000.0, layout: Layout = "interleaved"
) -> RoPE:
    """RoPE on the last channels: `trailing`.

    d_head      channels of a head, content and position together
    rotary_dim  channels that turn, an even number; about a third of d_head unless given
    base        of the frequencies
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    turning = max(d_head // 6 * 2, 2) if rotary_dim is None else rotary_dim
    return RoPE(d_head, rotary_dim=turning, trailing=True, base=base, layout=layout)


ENTRY = Entry(
    name="decoupled_rope",
    class_name="RoPE",
    builder="decoupled_rope",
    title=Words("Decoupled RoPE", "解耦旋转"),
    kind="rotated",
    published="2024-05",
    formula="[q, R(p)q'] · [k, R(p')k']",
    also_called=(
        "mla_rope",
        "mla",
        "multi-head latent attention rope",
        "qk_rope_head_dim",
    ),
    used_by=(
        "DeepSeek-V2",
        "DeepSeek-V3",
        "Kimi K2",
    ),
    source="DeepSeek-AI 2024, arXiv 2405.04434, section 2.1.3",
    idea=Words(
        "Latent attention keeps compressed keys, which a rotation would prevent. So the position has channels of "
        "its own at the end of each head, and the compressed ones do not turn. A head is wider by the channels "
        "that carry the position.",
        "潜在注意力缓存压缩后的键，旋转会使压缩失效。因此位置使用每个头末尾的专门通道，压缩的通道不旋转。每个头因此"
        "多出承载位置的通道。",
    ),
    latex=r"[\, q \,|\, R(i)\, q' \,] \cdot [\, k \,|\, R(j)\, k' \,]",
    breaks=Words(
        "Its rotating channels break where RoPE does.",
        "旋转的通道与 RoPE 在同样的地方失效。",
    ),
    differs=Words(
        "Each head has its own position key here; DeepSeek's one key for all heads belongs to the projection.",
        "这里每个头有自己的位置键；DeepSeek 各头共用一个键，那属于投影。",
    ),
    code="deepseek-ai/DeepSeek-V2",
    options={
        "d_head": "每个头的通道数，内容与位置合计",
        "rotary_dim": "旋转的通道数，偶数；默认约为 d_head 的三分之一",
    },
)
