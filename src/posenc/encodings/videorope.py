"""VideoRoPE: the slowest pairs read time, the others height and width in turn.

    ω_i = base^(-2i/d);   pairs 0, 2, 4, … read width, 1, 3, 5, … height, the last d/8 time

Wei et al. 2025, "VideoRoPE: What Makes for Good Video Rotary Position Embedding?", section 4, eq. 6. The authors' code
gives the even pairs to height and the odd ones to width: order=(1, 2). Positions: posenc.positions_by("videorope_ids", …).
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
def videorope(
    d_head: int,
    *,
    time: int | None = None,
    order: Sequence[int] = (2, 1),
    base: float = 1000000.0,
    layout: Layout = "half",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.cycling`; reads (time, height, width).

    d_head  channels of a head, even
    time    pairs that read time; a quarter of all unless given, 16 of 64 in the paper
    order   the axes that the other pairs read in turn: (2, 1) width first as in the paper, (1, 2) as in its code
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for a number of pairs that a head does not have, and for an order of other axes.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    time = max(pairs // 4, 1) if time is None else time
    checks.whole(time=time)
    if time > pairs:
        raise ValueError(f"time: expected up to {pairs} pairs, as d_head={d_head} has, got {time}")
    if sorted(order) != [1, 2]:
        raise ValueError(f"order: expected (2, 1) or (1, 2), got {tuple(order)}")
    dealt = frequencies.cycling(frequencies.rotary(d_head, base), order, n=pairs - time, rest=0)
    return RoPE(d_head, frequencies=dealt, layout=layout)


ENTRY = Entry(
    name="videorope",
    class_name="RoPE",
    builder="videorope",
    title=Words("VideoRoPE", "视频旋转"),
    kind="rotated",
    published="2025-02",
    axes=3,
    positions=(
        'posenc.positions_by("videorope_ids", text=length // 4, height=2, width=2, frames=length // 8, after=length // 4)'
    ),
    coordinates=Words(
        "Time, row and column, real numbers: words and the middle of every frame lie on one diagonal, and "
        "frames are two positions apart (paper, section 4, eq. 7).",
        "时间、行、列，为实数：词与每一帧的中心位于同一条对角线上，相邻两帧相隔两个位置（论文第 4 节式 7）。",
    ),
    formula="R(x)q, R(y)q in turn on fast pairs, R(t)q on slow ones",
    also_called=("video_rope", "low_frequency_temporal_allocation"),
    used_by=(Words("research: Qwen2-VL by its authors", "研究：作者的 Qwen2-VL"), "Ming-Omni"),
    source="Wei et al. 2025, arXiv 2502.05173, section 4, and the authors' code",
    idea=Words(
        "M-RoPE lets the fastest pairs read time, so that frames far apart look alike whenever such a pair has "
        "gone round. "
        "Here the slowest pairs read time, and the fast ones height and width in turn. Words, whose three numbers "
        "are the same, "
        "are turned as by plain RoPE.",
        "M-RoPE 用最快的通道对表示时间，每转一圈，相距很远的帧就显得相同。这里改用最慢的通道对表示时间，"
        "快的通道对交替表示宽和高。文字的三个数相同，等同于普通的 RoPE。",
    ),
    latex=(
        r"R(\omega_{2n}\, x)\,q, \quad R(\omega_{2n+1}\, y)\,q, \quad R(\omega_n\, t)\,q \text{ for the slowest "
        r"quarter}"
    ),
    breaks=Words(
        "The slowest pairs tell moments apart only over hundreds of positions: close frames are told apart by "
        "their content and by the diagonal positions. It needs a model trained with it.",
        "最慢的通道对要相隔数百个位置才能区分时间：相近的帧靠内容和对角线位置区分。需要用它训练过的模型。",
    ),
    differs=Words(
        "The authors' code gives the even pairs to height and the odd ones to width: order=(1, 2).",
        "作者代码把偶数通道对给高、奇数给宽：order=(1, 2)。",
    ),
    code="Wiselnn570/VideoRoPE",
    options={
        "time": "读取时间的通道对数；默认为四分之一，论文为 64 对中的 16 对",
        "order": "其余通道对轮流读取的轴：(2, 1) 先宽后高（论文），(1, 2) 为其代码",
    },
)
