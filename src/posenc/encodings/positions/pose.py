"""PoSE: in training, a short text is cut in two, and the second part is numbered as if it came much later.

    p' = p  for p < cut,   p + u  from there on,   u drawn from 0 … max_positions - length

Zhu et al. 2023, "PoSE: Efficient Context Window Extension of LLMs via Positional Skip-wise Training", section 3.2. The
paper also shifts the first part; the authors' code of October 2023 leaves it at 0, for distances to be met more evenly,
and cuts within the first half.
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def pose(batch: int, length: int, max_positions: int = 16384, *, generator: torch.Generator | None = None) -> Positions:
    """Consecutive positions with one skip in every row, as the authors' code draws them.

    batch          rows
    length         tokens of a row, from 2
    max_positions  positions wanted: the last one is below it
    generator      the source of the random numbers; torch's own if left out

    Raises ValueError for a length above max_positions, or below 2.
    """
    if not 2 <= length <= max_positions:
        raise ValueError(f"length: expected a whole number from 2 to max_positions={max_positions}, got {length}")
    cut = 1 + torch.randint((length + 1) // 2, (batch, 1), generator=generator)
    skip = torch.randint(max_positions - length + 1, (batch, 1), generator=generator)
    plain = torch.arange(length)
    return Positions.at(plain + skip * (plain >= cut))


ENTRY = Entry(
    name="pose",
    class_name="Positions",
    builder="pose",
    title=Words("PoSE", "跳跃位置"),
    kind="positions",
    published="2023-09",
    formula="p, then p + u from a cut on",
    also_called=(
        "positional_skip_wise_training",
        "skip_wise",
    ),
    used_by=(
        Words(
            "research: LLaMA up to 128k tokens by its authors",
            "研究：作者的 LLaMA 实验，至 128k 词元",
        ),
    ),
    source="Zhu et al. 2023, arXiv 2309.10400, section 3.2, and their code",
    idea=Words(
        "A model learns long distances from short texts: the text is cut at random, and the second part is "
        "numbered as if a long gap lay between. Together with a scaling such as YaRN it extends the context at the "
        "cost of short training. It needs a model whose encoding reaches that far.",
        "模型从短文本学习长距离：随机切成两段，第二段的编号好像与第一段之间隔着很长的空白。与 YaRN 等缩放一起使用，"
        "只需短文本训练就能扩展上下文。模型的编码须能到达那么远。",
    ),
    latex=r"p' = p + u\,[p \ge \mathrm{cut}], \quad u \sim U\{0, \dots, M - n\}",
    starts=("trained",),
    breaks=Words(
        "Only two stretches of the long range are seen at once, so that tasks that combine many far facts gain less.",
        "每次只看到长范围中的两段，需要结合许多远处信息的任务收益较小。",
    ),
    differs=Words(
        "The first part starts at 0 and the cut lies in the first half, as in the authors' code; the paper shifts "
        "both parts.",
        "与作者代码一致：第一段从 0 开始，切点在前一半；论文中两段都平移。",
    ),
    code="dwzhu-pku/PoSE",
    options={
        "max_positions": "想要的位置数：最后一个小于它",
        "length": "每行的词数，至少 2",
    },
)
