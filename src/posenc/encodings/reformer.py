"""Reformer's axial table: a position is split into two digits, each with a short learned vector.

    x_p + [rows[⌊p/W⌋] | columns[p mod W]]

Kitaev et al. 2020, "Reformer: The Efficient Transformer", and their code (AxialPositionalEncoding of trax).
"""

from __future__ import annotations

import math

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def reformer(d_model: int, *, max_positions: int = 2048) -> LearnedAxes:
    """`LearnedAxes` of one coordinate that is counted row by row through a box of max_positions places.

    d_model        channels, an even number: half for each digit
    max_positions  rows of the box times columns: W is the largest divisor up to its square root

    Raises ValueError for an odd width.
    """
    checks.even(d_model=d_model)
    rows = max(n for n in range(1, math.isqrt(max_positions) + 1) if max_positions % n == 0)
    return LearnedAxes(d_model, (rows, max_positions // rows), combine="concat", folded=True)


ENTRY = Entry(
    name="reformer",
    class_name="LearnedAxes",
    builder="reformer",
    title=Words("Axial table of Reformer", "Reformer 的轴向表"),
    kind="added",
    published="2020-01",
    needs=("parameters",),
    formula="x + [rows[p div W] | columns[p mod W]]",
    also_called=(
        "axial_positional_embedding",
        "axial_pos_embds",
        "AxialPositionEmbeddings",
    ),
    used_by=("Reformer",),
    source="Kitaev et al. 2020, arXiv 2001.04451, and their code",
    idea=Words(
        "A learned table for very long texts: the position is written with two digits, and each digit has a "
        "learned vector of half the channels. Two tables of about √n rows replace one of n rows. Nearness in the "
        "text is kept by the second digit only.",
        "用于很长文本的可学习表：位置写成两位数，每一位有一个占一半通道的学到的向量。两张约 √n 行的表代替一张 n "
        "行的表。只有第二位数字反映文本中的邻近。",
    ),
    latex=r"x_p + \big[\, \mathrm{rows}_{\lfloor p/W \rfloor} \,\big|\, \mathrm{columns}_{p \bmod W} \,\big]",
    breaks=Words(
        "The tables end. Positions one row of the box apart share half of their vector, although they are far "
        "apart in the text.",
        "表有尽头。在方阵中只差一行的两个位置共用一半向量，尽管它们在文本中相距很远。",
    ),
    code="google/trax",
    options={
        "d_model": "通道数，偶数：每位数字占一半",
        "max_positions": "方阵的行数乘列数：W 为不超过其平方根的最大约数",
    },
)
