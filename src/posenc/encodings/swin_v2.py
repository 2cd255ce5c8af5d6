"""Swin v2's bias: a small network of the logarithm of the difference, and cosine attention.

    logits = τ_h·cos(q, k) + 16·σ(network(sign(Δ)·log₂(1 + |8Δ̂|)/log₂ 8)),   τ_h = exp(min(s_h, ln 100))

Liu et al. 2021, "Swin Transformer V2", section 3.3, and its code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.continuous_window_bias import ContinuousWindowBias
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def swin_v2(n_heads: int, *, height: int = 8, width: int = 8) -> ContinuousWindowBias:
    """`ContinuousWindowBias` of a window.

    n_heads        query heads
    height, width  of the window, in patches

    Raises ValueError for sizes that are not positive.
    """
    return ContinuousWindowBias(n_heads, (height, width))


ENTRY = Entry(
    name="swin_v2",
    class_name="ContinuousWindowBias",
    builder="swin_v2",
    title=Words("Swin v2", "连续窗口偏置"),
    kind="biased",
    published="2021-11",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Whole rows and columns within one window, of which only differences count, and the encoding divides "
        "them by the window (Swin's swin_transformer_v2.py); windows of a larger image are documents, which "
        'posenc.positions_by("windows", …) makes.',
        "一个窗口内的整数行号与列号，只有差起作用，由编码除以窗口大小（Swin 的 swin_transformer_v2.py）；更大"
        '图像的各个窗口是不同的文档，由 posenc.positions_by("windows", …) 给出。',
    ),
    both_ways=True,
    formula="τ·cos(q, k) + 16σ(MLP(log Δ))",
    also_called=(
        "swinv2",
        "continuous_relative_position_bias",
        "cpb",
        "log_cpb",
        "continuous_window_bias",
    ),
    used_by=(
        "Swin v2",
        "Swin2SR",
    ),
    source="Liu et al. 2021, arXiv 2111.09883, section 3.3, and its code",
    idea=Words(
        "A small network computes the bias from the logarithm of the difference in rows and columns, so that a "
        "trained model can be used with larger windows. Scores are cosines times a learned factor, which keeps "
        "them from growing. The bias lies between 0 and 16.",
        "由一个小网络根据行差与列差的对数算出偏置，训练好的模型因此可以用于更大的窗口。注意力分数是余弦乘以学到的系"
        "数，不会无限增大。偏置介于 0 和 16 之间。",
    ),
    latex=r"\tau_h \cos(q_i, k_j) + 16\,\sigma\big(\mathrm{MLP}(\mathrm{sign}(\Delta) \log_2(1 + |8 \hat\Delta|) "
    r"/ \log_2 8)\big)",
    breaks=Words(
        "Attention stays within the window. Windows much larger than those of training still need some more training.",
        "注意力限于窗口内。窗口比训练时大很多时，仍需再训练。",
    ),
    code="microsoft/Swin-Transformer",
)
