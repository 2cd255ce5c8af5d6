"""DAPE version 2: the scores are a map of features, which convolutions over neighbouring keys process.

    logits = s + b + W₂ * leaky_relu(W₁ * [s ; b] + c₁) + c₂          * a convolution over the keys, s = q·k/√d

Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length Extrapolation", section 3. See dape.py for
what keys are read, and for what differs from the authors' code.
"""

from __future__ import annotations

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encodings.dape import DAPE, Over
from posenc.entry import Entry


@checked
def dape_v2(n_heads: int, *, over: Over = "kerple", width: int = 32, kernel: int = 3) -> DAPE:
    """`DAPE` with a convolution over neighbouring keys.

    n_heads  query heads
    over     the bias of the distance: "kerple", "alibi" or "fire"
    width    hidden units of the network
    kernel   keys that each of its two layers reads, an odd number

    Raises ValueError for an even kernel.
    """
    return DAPE(n_heads, over=over, width=width, kernel=kernel)


ENTRY = Entry(
    name="dape_v2",
    class_name="DAPE",
    builder="dape_v2",
    title=Words("DAPE V2", "DAPE 第二版"),
    kind="contextual",
    published="2024-10",
    needs=("parameters",),
    per_layer=True,
    formula="s + b + conv(leaky_relu(conv([s ; b])))",
    also_called=("dapev2", "attention_score_as_feature_map", "Kerple_DAPEV2", "Alibi_DAPEV2", "FIRE_DAPEV2"),
    used_by=(Words("research: length extrapolation by its authors", "研究：作者用于长度外推"),),
    source="Zheng et al. 2024, arXiv 2410.04798, section 3, and the authors' code",
    idea=Words(
        "The scores of a query over all keys are treated as an image with one channel per head, and two small convolutions "
        "over neighbouring keys correct them. A head can so react to a pattern of neighbouring tokens, for example to copy "
        "what followed an earlier occurrence.",
        "把一个查询对所有键的分数看作每个头一个通道的图像，用两个小卷积在相邻的键上修正。"
        "因此一个头可以对相邻词的模式作出反应，例如复制先前出现处之后的内容。",
    ),
)
