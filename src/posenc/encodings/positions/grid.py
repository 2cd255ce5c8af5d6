"""Patches of an image row by row: each at its row and column.

    (y, x) = (⌊n/width⌋, n mod width)

Dosovitskiy et al. 2020 (ViT) number patches in this order.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def grid(height: int, width: int, *, batch: int = 1, prefix: int = 0) -> Positions:
    """`Positions.grid`: coordinates (y, x) of height·width patches.

    height, width  patches of the image
    batch          rows
    prefix         tokens before the patches that are none, such as the class token: the k-th lies at (-1, k)

    Raises ValueError for sizes that are not positive.
    """
    return Positions.grid(height, width, batch=batch, prefix=prefix)


ENTRY = Entry(
    name="grid",
    class_name="Positions",
    builder="grid",
    title=Words("Grid", "网格位置"),
    kind="positions",
    published="2020-10",
    axes=2,
    formula="(y, x), row by row",
    also_called=(
        "image_grid",
        "patches",
        "meshgrid",
    ),
    used_by=(
        "ViT",
        "Swin",
        "SAM",
    ),
    source="Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.1",
    idea=Words(
        "The tokens of an image are its patches, row by row. Each has two whole numbers: row and column. Tokens "
        "that are no patches stand at row -1.",
        "图像的词元是逐行排列的图块，每个有行、列两个整数。不是图块的词元位于第 -1 行。",
    ),
    latex=r"(y, x) = (\lfloor n / W \rfloor,\; n \bmod W)",
    breaks=Words(
        "Whole numbers grow with the image: encodings trained on small images meet new ones.",
        "编号随图像变大：在小图像上训练的编码会遇到新的编号。",
    ),
    code="google-research/vision_transformer",
    options={
        "prefix": "图块之前的非图块词，如分类词：第 k 个位于 (-1, k)",
    },
)
