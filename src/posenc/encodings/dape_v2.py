"""DAPE version 2: the scores are a map of features, which convolutions over neighbouring keys process.

    logits = s + b + W₂ * leaky_relu(W₁ * [s ; b] + c₁) + c₂      * a convolution over the keys, s = q·k/√d

Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length Extrapolation", section 3. See dape.py for
what keys are read. The authors' code zeroes what the first convolution reads, but not what the second does: in training a
query's own key reads one hidden value of the next key, which is not there when a token is decoded with a cache. Here it is
never there.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.dape import DAPE, Over
from posenc.support.checked import checked
from posenc.support.languages import Words


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
        "The scores of a query over all keys are treated as an image with one channel per head, and two small "
        "convolutions over neighbouring keys correct them. A head can so react to a pattern of neighbouring tokens. "
        "It can for example copy what followed an earlier occurrence.",
        "把一个查询对所有键的分数看作每个头一个通道的图像，用两个小卷积在相邻的键上修正。"
        "因此一个头可以对相邻词的模式作出反应，例如复制先前出现处之后的内容。",
    ),
    latex=r"s + b + W_2 * \mathrm{LeakyReLU}(W_1 * [s ; b] + c_1) + c_2, \quad s = q \cdot k / \sqrt{d}",
    breaks=Words(
        "As DAPE: the scores of all heads must be at one place, and memory grows with the square of the length. It also "
        "reads neighbouring keys, so that a key that is left out of the cache changes its neighbours' scores.",
        "与 DAPE 相同：所有头的分数必须在一处，内存随长度的平方增长。它还读取相邻的键，"
        "因此缓存中去掉一个键会改变相邻键的分数。",
    ),
    differs=Words(
        "In training, the authors' second convolution reads a hidden value of the next key, which it does not find when "
        "it decodes with a cache. Here that value is zero in both.",
        "训练时，作者的第二个卷积会读到下一个键的隐藏值，而带缓存解码时没有它。这里两种情况下该值都为零。",
    ),
    code="chuanyang-Zheng/DAPE",
    options={
        "over": '距离的偏置："kerple"、"alibi" 或 "fire"',
        "width": "网络的隐藏单元数",
        "kernel": "两层各自读取的键数，奇数",
    },
)
