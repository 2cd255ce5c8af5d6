"""ViT's learned grid: a vector for each patch and one for the class token; other grids are interpolated.

    x_(y,x) + table[y, x],   x_class + table[class]

Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", section 3.1 and 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_grid import LearnedGrid
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def vit(d_model: int, *, height: int = 14, width: int = 14, class_token: bool = True) -> LearnedGrid:
    """`LearnedGrid` with bicubic interpolation for images of other sizes.

    d_model        channels
    height, width  patches of the trained images; 14 × 14 are those of 224 pixels
    class_token    one more row, for a token at (-1, 0)

    Raises ValueError for sizes that are not positive.
    """
    return LearnedGrid(d_model, height, width, prefix=int(class_token))


ENTRY = Entry(
    name="vit",
    class_name="LearnedGrid",
    builder="vit",
    title=Words("Learned grid", "可学习网格"),
    kind="added",
    published="2020-10",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width, prefix=1)",
    coordinates=Words(
        "Rows and columns of the trained grid, counted from 0; the class token, at row -1, has a vector of "
        "its own (ViT's vit_jax/models_vit.py: one table, the class token first, then row by row).",
        "训练网格的行号与列号，从 0 开始；位于第 -1 行的分类词元有自己的向量（ViT 的 vit_jax/models_vit.py："
        "一张表，先是分类词元，再逐行排列）。",
    ),
    both_ways=True,
    formula="x + table[y, x]",
    also_called=(
        "learned_grid",
        "vit_position_embeddings",
        "interpolate_pos_encoding",
    ),
    used_by=(
        "ViT",
        "CLIP",
        "DeiT",
        "DINOv2",
        "SigLIP",
    ),
    example="""\
encoding = posenc.create("vit", d_model=d_model)
at = posenc.Positions.grid(16, 16, prefix=1, sized=True)  # another size than 14 × 14
words = torch.randn(batch, 257, d_model)
x = encoding.embed(words, at)
""",
    source="Dosovitskiy et al. 2020, arXiv 2010.11929, sections 3.1 and 3.2",
    idea=Words(
        "Each patch of a fixed grid has a learned vector, and so has the class token. For an image with more or "
        "fewer patches, the grid is interpolated. That the image has two dimensions is not told, but learned.",
        "固定网格中每个图块有一个学到的向量，分类词元也有一个。图块数不同的图像，对网格做插值。图像是二维的这一点没"
        "有告知模型，而是学到的。",
    ),
    latex=r"x_{y,x} + T_{y,x}, \quad x_{\mathrm{class}} + T_{\mathrm{class}}",
    starts=("scratch", "trained"),
    breaks=Words(
        "It belongs to one size of image. Interpolated to another, quality falls until the model is trained again.",
        "它属于一种图像尺寸。插值到别的尺寸后，质量下降，需要再训练。",
    ),
    code="google-research/vision_transformer",
    options={
        "height": "训练图像的图块数；224 像素为 14 × 14",
        "width": "训练图像的图块数；224 像素为 14 × 14",
        "class_token": "多一行，给位于 (-1, 0) 的词",
    },
)
