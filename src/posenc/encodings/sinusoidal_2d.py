"""Sinusoids of two coordinates: half of the channels hold the column, half the row.

    x + [sin xω | cos xω | sin yω | cos yω],   ω_i = base^(-2i/(d/2))

Parmar et al. 2018, "Image Transformer", section 3.1; the layout is that of He et al. 2021, "Masked Autoencoders Are
Scalable Vision Learners", and their code. A token with a negative coordinate gets nothing: the class token, which
`Positions.grid(height, width, prefix=1)` puts at (-1, 0).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def sinusoidal_2d(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, column before row; positions are (y, x), as Positions.grid gives them.

    d_model  channels, a multiple of 4
    base     the slowest pair turns once in about 2π·base patches

    Raises ValueError for a width that cannot be shared.
    """
    if d_model % 4:
        raise ValueError(f"d_model: expected a multiple of 4, got {d_model}")
    return Sinusoidal(d_model, base=base, axes=2, reads=(1, 0), layout="sin_cos", silent="outside")


ENTRY = Entry(
    name="sinusoidal_2d",
    class_name="Sinusoidal",
    builder="sinusoidal_2d",
    title=Words("2-D sinusoidal", "二维正弦"),
    kind="added",
    published="2018-02",
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    coordinates=Words(
        "Rows and columns, counted from 0; a class token, at (-1, 0), gets nothing (MAE's util/pos_embed.py).",
        "行号与列号，从 0 开始；位于 (-1, 0) 的分类词元不加任何东西（MAE 的 util/pos_embed.py）。",
    ),
    both_ways=True,
    formula="x + [sin, cos of xω | sin, cos of yω]",
    also_called=(
        "2d_sincos",
        "sincos_2d",
        "get_2d_sincos_pos_embed",
        "PositionalEncoding2D",
    ),
    used_by=(
        "ViT-MAE",
        "MoCo v3",
        "AIMv2",
        "RT-DETR",
    ),
    source="Parmar et al. 2018, arXiv 1802.05751, section 3.1; He et al. 2021, arXiv 2111.06377",
    idea=Words(
        "Each patch of an image gets a fixed vector: sines and cosines of its column in one half of the channels, "
        "of its row in the other. It needs no parameters and suits images of any size. Row and column never mix "
        "within a channel.",
        "每个图块有一个固定向量：一半通道是列坐标的正弦和余弦，另一半是行坐标的。没有参数，适用于任意大小的图像。行"
        "与列不在同一通道内混合。",
    ),
    latex=r"x_{y,x} + [\, \sin x\omega \,|\, \cos x\omega \,|\, \sin y\omega \,|\, \cos y\omega \,]",
    breaks=Words(
        "Larger images than those of training have sums that the model has not seen.",
        "比训练时大的图像会出现模型没见过的和。",
    ),
    code="facebookresearch/mae",
    options={
        "base": "最慢的通道对约 2π·base 个图块转一圈",
        "d_model": "通道数，4 的倍数",
    },
)
