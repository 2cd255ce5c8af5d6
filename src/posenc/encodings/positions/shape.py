"""SHAPE: in training, every row of positions is shifted by a random number.

    p' = p + k,   k drawn from 0 … max_shift for every row

Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding for Transformers".
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def shape(batch: int, length: int, *, max_shift: int = 500, generator: torch.Generator | None = None) -> Positions:
    """Consecutive positions from a random start of every row.

    batch      rows
    length     tokens of a row
    max_shift  the largest start; 500 in the paper's experiments
    generator  the source of the random numbers; torch's own if left out

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(0, max_shift=max_shift)
    start = torch.randint(max_shift + 1, (batch,), generator=generator)
    return Positions.arange(batch, length, start)


ENTRY = Entry(
    name="shape",
    class_name="Positions",
    builder="shape",
    title=Words("SHAPE", "平移增强位置"),
    kind="positions",
    published="2021-09",
    formula="p + k, k ~ U{0 … K}",
    also_called=(
        "shifted_absolute_position_embedding",
        "random_shift",
    ),
    used_by=(Words("research: machine translation by its authors", "研究：作者的机器翻译实验"),),
    source="Kiyono et al. 2021, arXiv 2109.05644",
    idea=Words(
        "In training, all positions of a text are shifted by the same random number. An absolute encoding so "
        "learns that only differences count, without any change to the model. In use, texts start at 0.",
        "训练时，一段文本的所有位置加上同一个随机数。绝对编码因此学到只有差值重要，模型不用任何改动。使用时文本从 0 开始。",
    ),
    latex=r"p' = p + k, \quad k \sim U\{0, \dots, K\}",
    breaks=Words(
        "It does not teach longer distances than the texts have.",
        "它不能教会比文本更长的距离。",
    ),
    code="butsugiri/shape",
    options={
        "max_shift": "最大的起点；论文实验为 500",
    },
)
