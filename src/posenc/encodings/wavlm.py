"""WavLM's gated bias: T5's, multiplied by a gate that each hidden state computes.

    logits += g_hi·b[h, bucket(i - j)],   g_hi = α·(β·c_h - 1) + 2,   α and β from the head's slice of the hidden state

Chen et al. 2021, "WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech Processing", section 3.1.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.of_families.t5_gated import GatedT5
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def wavlm(n_heads: int, d_head: int, *, n_buckets: int = 320, max_distance: int = 800) -> GatedT5:
    """`GatedT5`, for attention both ways.

    n_heads, d_head  query heads and their channels; hidden states have n_heads·d_head
    n_buckets        rows of the table
    max_distance     from here on, everything falls into the last bucket

    Raises ValueError for sizes that do not fit.
    """
    return GatedT5(n_heads, d_head, n_buckets=n_buckets, max_distance=max_distance)


ENTRY = Entry(
    name="wavlm",
    class_name="GatedT5",
    builder="wavlm",
    title=Words("Gated T5 of WavLM", "WavLM 的门控偏置"),
    kind="biased",
    published="2021-10",
    needs=(
        "parameters",
        "hidden_states",
    ),
    formula="q·k + g·b[bucket(i-j)]",
    also_called=(
        "gated_relative_position_bias",
        "gated_t5",
        "gru_rel_pos",
    ),
    used_by=("WavLM",),
    source="Chen et al. 2021, arXiv 2110.13900, section 3.1",
    idea=Words(
        "T5's bias times a gate: each token's hidden state decides for each head how much the distance matters. So "
        "frames of speech and of silence can look at their neighbours in different ways. One table serves all "
        "layers.",
        "T5 偏置乘以一个门：每个词的隐藏状态在每个头上决定距离有多重要。语音帧与静音帧因此可以用不同的方式看待邻近"
        "的帧。所有层共用一张表。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + g_{hi}\, b_{h,\, \mathrm{bucket}(i-j)}",
    breaks=Words(
        "Distances beyond the last bucket look the same, and the gates need a pass over the hidden states in every layer.",
        "最后一个桶以外的距离无法区分；每一层都要从隐藏状态计算门。",
    ),
    code="microsoft/unilm",
    options={
        "n_heads": "查询头数及其通道数；隐藏状态有 n_heads·d_head 个通道",
        "d_head": "查询头数及其通道数；隐藏状态有 n_heads·d_head 个通道",
        "max_distance": "从这里起都归入最后一个桶",
        "n_buckets": "表的行数",
    },
)
