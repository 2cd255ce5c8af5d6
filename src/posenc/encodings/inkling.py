"""Inkling's bank: learned profiles of distance, mixed by every token for itself.

    logits += (r_hi·P)[i - j]  for 0 ≤ i - j < extent,   r_hi = W_h x_i

transformers, models/inkling: there is no paper. Its layers without a window also sharpen with position:
inkling_temperature.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def inkling(n_heads: int, d_model: int, *, profiles: int = 16, extent: int = 1024) -> DistanceBank:
    """`DistanceBank` reading hidden states.

    n_heads   query heads
    d_model   channels of the hidden states
    profiles  rows of the bank
    extent    distances that it knows: 1024, or the window of a sliding layer

    Raises ValueError for sizes that are no counts.
    """
    return DistanceBank(n_heads, d_model, profiles=profiles, extent=extent)


ENTRY = Entry(
    name="inkling",
    class_name="DistanceBank",
    builder="inkling",
    title=Words("Bank of Inkling", "Inkling 距离库"),
    kind="biased",
    published="2026-05",
    needs=(
        "parameters",
        "hidden_states",
    ),
    per_layer=True,
    formula="q·k + (W x_i·P)[i-j]",
    also_called=(
        "distance_bank",
        "InklingRelativeLogits",
        "relative_logits",
    ),
    used_by=(
        "Inkling",
        "Inkling 2",
    ),
    source="transformers, models/inkling: no paper",
    idea=Words(
        "A layer learns sixteen curves of the distance. Every token mixes them for each head by a projection of "
        "its hidden state, and the mixture is added to the scores. There is no rotation.",
        "每层学习十六条关于距离的曲线。每个词用隐藏状态的投影为每个头混合这些曲线，结果加到注意力分数上。没有旋转。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + (W_h x_i \cdot P)_{i - j}",
    breaks=Words(
        "Distances beyond the bank's length add nothing.",
        "超过曲线长度的距离没有偏置。",
    ),
    code="huggingface/transformers",
    options={
        "d_model": "隐藏状态的通道数",
        "profiles": "曲线的条数",
        "extent": "覆盖的距离：1024，或滑动层的窗口",
    },
)
