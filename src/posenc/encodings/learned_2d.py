"""A learned vector for each row and one for each column, summed.

    x_(y,x) + rows[y] + columns[x]

Lee et al. 2022, "Pix2Struct", section 2.2; Carion et al. 2020 (DETR's learned variant puts the two side by side).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def learned_2d(d_model: int, *, max_positions: int = 128) -> LearnedAxes:
    """`LearnedAxes` of two coordinates.

    d_model        channels
    max_positions  rows of each table: patches down and across

    Raises ValueError for sizes that are not positive.
    """
    return LearnedAxes(d_model, (max_positions, max_positions))


ENTRY = Entry(
    name="learned_2d",
    class_name="LearnedAxes",
    builder="learned_2d",
    title=Words("Learned rows and columns", "可学习行列"),
    kind="added",
    published="2022-10",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width).shift(1)",
    coordinates=Words(
        "Rows and columns counted from 1, since Pix2Struct keeps row 0 of its tables for padding (its image "
        "processor); DETR's learned variant counts from 0.",
        "行与列从 1 开始计数，因为 Pix2Struct 的表把第 0 行留给填充（见其图像处理器）；DETR 的可学习形式从 0 开始。",
    ),
    both_ways=True,
    formula="x + rows[y] + columns[x]",
    also_called=(
        "learned_axes",
        "row_embedder",
        "column_embedder",
        "learned_xy",
    ),
    used_by=(
        "Pix2Struct",
        Words("Gemma 4 (vision)", "Gemma 4（视觉）"),
        "PaddleOCR-VL",
    ),
    source="Lee et al. 2022, arXiv 2210.03347, section 2.2",
    idea=Words(
        "A patch gets the sum of the learned vector of its row and that of its column. There are far fewer "
        "parameters than for each cell of a grid, and any aspect ratio fits as long as the tables last. The "
        "vectors are added once, before the first layer.",
        "图块的向量是行向量与列向量之和，两者都学习得到。参数比每格一个向量少得多，只要不超出表的大小，任何长宽比都"
        "适用。向量只在第一层之前相加一次。",
    ),
    latex=r"x_{y,x} + \mathrm{rows}_y + \mathrm{columns}_x",
    breaks=Words(
        "The tables end. A position is a sum, so no pair of row and column has a vector of its own.",
        "表有尽头。位置是两者之和，行列的组合没有自己的向量。",
    ),
    code="google-research/pix2struct",
    options={
        "max_positions": "每张表的行数：纵向与横向的图块数",
    },
)
