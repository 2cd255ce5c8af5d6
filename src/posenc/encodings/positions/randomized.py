"""Randomized positions: in training, every row gets a sorted random subset of a long range.

    p_1 < p_2 < … < p_n,  drawn from 0 … max_positions - 1 without repetition

Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers", section 3.
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def randomized(
    batch: int, length: int, max_positions: int = 2048, *, generator: torch.Generator | None = None
) -> Positions:
    """`Positions.randomized`: a sorted random subset of 0 … max_positions - 1 for every row, drawn anew at each call.

    batch          rows
    length         tokens of a row
    max_positions  positions to draw from; 2048 in the paper, which trains on up to 40 tokens
    generator      the source of the random numbers; torch's own if left out

    Raises ValueError for a length above max_positions.
    """
    return Positions.randomized(batch, length, max_positions, generator=generator)


ENTRY = Entry(
    name="randomized",
    class_name="Positions",
    builder="randomized",
    title=Words("Randomized positions", "随机位置"),
    kind="positions",
    published="2023-05",
    formula="p = sort(subset of 0 … max_positions-1)",
    also_called=("random_positions", "randomized_positional_encodings", "randomised", "随机位置编码"),
    used_by=(Words("research: algorithmic tasks by its authors", "研究：作者的算法任务"),),
    source="Ruoss et al. 2023, arXiv 2305.16843, section 3",
    idea=Words(
        "In training, tokens are numbered with a sorted random subset of a range much longer than the training length. "
        "The model so meets all positions of that range and learns that only their order counts. "
        "It suits every encoding.",
        "训练时，从一个比训练长度大得多的范围里随机取一组位置，排序后给词编号。"
        "模型因此见过该范围内的所有位置，并学到只有先后次序重要。它适用于各种编码。",
    ),
    latex=r"p_1 < p_2 < \dots < p_n, \quad \{p_t\} \subset \{0, \dots, M - 1\}",
    breaks=Words(
        "Neighbours stand at random distances, so that a model learns their order and not how many tokens lie between "
        "them.",
        "相邻的词距离随机，因此模型学到的是顺序，而不是两个词之间隔了多少词。",
    ),
    code="google-deepmind/randomized_positional_encodings",
    options={
        "max_positions": "抽取范围的位置数；论文为 2048，训练最多 40 个词",
    },
)
