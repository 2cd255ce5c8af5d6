"""DETR's positions: pixels counted from one along the real part of each image, scaled to 2π.

    y, x = count/(last count + 1e-6)·2π

Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4, and their code.
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def pixels(height: int, width: int, *, batch: int = 1) -> Positions:
    """`Positions.pixels` of whole images; give that a mask where images of a batch have different sizes.

    height, width  pixels, or cells of the feature map
    batch          rows

    Raises ValueError for sizes that are not positive.
    """
    return Positions.pixels(torch.ones(batch, height, width, dtype=torch.bool))


ENTRY = Entry(
    name="pixels",
    class_name="Positions",
    builder="pixels",
    title=Words("Pixels of DETR", "DETR 的像素位置"),
    kind="positions",
    published="2020-05",
    axes=2,
    formula="(y, x) = count/(last count)·2π",
    also_called=(
        "detr_positions",
        "cumsum of the mask",
    ),
    used_by=(
        "DETR",
        "Deformable DETR",
    ),
    source="Carion et al. 2020, arXiv 2005.12872, appendix A.4, and their code",
    idea=Words(
        "Rows and columns are counted from one along what is image and not padding, and divided by the last count. "
        "Every image so spans the same range. Padding does not count.",
        "沿图像的真实部分（不含填充）从一开始数行和列，再除以最后的计数。每幅图像因此覆盖相同的范围。填充不计数。",
    ),
    latex=r"y, x = 2\pi\, \frac{n}{N + 10^{-6}}, \quad n = 1 \dots N",
    starts=("scratch", "trained"),
    breaks=Words(
        "The distance of two pixels depends on the size of the image around them.",
        "两个像素的距离取决于图像大小。",
    ),
    code="facebookresearch/detr",
    options={
        "height": "像素数，或特征图的格数",
        "width": "像素数，或特征图的格数",
    },
)
