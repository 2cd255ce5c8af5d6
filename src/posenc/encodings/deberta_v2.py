"""DeBERTa with logarithmic buckets of distance, versions 2 and 3.

    logits as in DeBERTa,   distance exact up to 128, then logarithmic up to 512;   the table goes through a layer norm

He et al. 2020, "DeBERTa", and the code of version 2; He et al. 2021, "DeBERTaV3".
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.deberta import DeBERTa
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def deberta_v2(
    d_model: int, n_heads: int, *, d_head: int | None = None, n_buckets: int = 256, max_distance: int = 512
) -> DeBERTa:
    """`DeBERTa` with buckets and a normalised table.

    d_model, n_heads  channels of the table and query heads
    d_head            channels of a head, d_model / n_heads if left out
    n_buckets         rows a side of logarithmic buckets
    max_distance      the largest distance told apart

    Raises ValueError for sizes that do not fit.
    """
    return DeBERTa(d_model, n_heads, d_head=d_head, n_buckets=n_buckets, max_distance=max_distance, norm_eps=1e-7)


ENTRY = Entry(
    name="deberta_v2",
    class_name="DeBERTa",
    builder="deberta_v2",
    title=Words("DeBERTa v2", "DeBERTa 第二版"),
    kind="relative",
    published="2021-11",
    needs=("parameters",),
    formula="(q·k + q·W_K p + k·W_Q p)/√(3d), log buckets",
    also_called=(
        "deberta_v3",
        "deberta-v2",
        "make_log_bucket_position",
    ),
    used_by=(
        "DeBERTa v2",
        "DeBERTaV3",
        "mDeBERTa",
    ),
    source="He et al. 2021, arXiv 2111.09543, and the code of version 2",
    idea=Words(
        "DeBERTa whose distances are exact when near and grouped logarithmically when far, so that 256 vectors a "
        "side reach 512 tokens and what is further counts as the last. The table goes through a layer norm first. "
        "Versions 2 and 3 have it.",
        "近处的距离精确、远处按对数分组的 DeBERTa：每侧 256 个向量覆盖 512 个词，更远的都算作最后一组。表先经过层归"
        "一化。第二版和第三版采用。",
    ),
    latex=r"\frac{q_i \cdot k_j + q_i \cdot W_K p_\delta + k_j \cdot W_Q p_\delta}{\sqrt{3d}}, \quad \delta = "
    r"\mathrm{bucket}(i - j)",
    breaks=Words(
        "Distances in one far bucket look the same, and all beyond 512 tokens do. No fused kernel serves it.",
        "远处同一个桶内的距离无法区分，超过 512 个词的都一样。没有融合内核可用。",
    ),
    differs=Words(
        "The buckets stand in the authors' code, not in the paper.",
        "对数桶见于作者代码，论文中没有。",
    ),
    code="microsoft/DeBERTa",
    options={
        "max_distance": "能区分的最大距离",
        "n_buckets": "每侧对数桶的行数",
    },
)
