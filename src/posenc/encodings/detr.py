"""DETR's sinusoids: pixels counted along the real part of the image, the count scaled to 2π.

    x + [interleaved sin, cos of y | the same of x],   y, x = count/(last count)·2π, from 1

Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4, and their code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def detr(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, row before column; positions are those of posenc.positions_by("pixels", …).

    d_model  channels, a multiple of 4
    base     temperature in DETR's code; 20 in some of its followers

    Raises ValueError for a width that cannot be shared.
    """
    if d_model % 4:
        raise ValueError(f"d_model: expected a multiple of 4, got {d_model}")
    return Sinusoidal(d_model, base=base, axes=2)


ENTRY = Entry(
    name="detr",
    class_name="Sinusoidal",
    builder="detr",
    title=Words("Sinusoidal of DETR", "DETR 的正弦编码"),
    kind="added",
    published="2020-05",
    axes=2,
    positions='posenc.positions_by("pixels", height=height, width=width)',
    coordinates=Words(
        "Rows and columns counted from 1, divided by the last count plus 1e-6 and multiplied by 2π (DETR's "
        "models/position_encoding.py with normalize=True).",
        "行与列从 1 开始计数，除以最后的计数加 1e-6，再乘以 2π（DETR 的 models/position_encoding.py，normalize=True）。",
    ),
    both_ways=True,
    formula="x + [sin, cos of y | sin, cos of x], 0 … 2π",
    also_called=(
        "PositionEmbeddingSine",
        "detr_sine",
        "DetrSinePositionEmbedding",
    ),
    used_by=(
        "DETR",
        "Deformable DETR",
        "MaskFormer",
        "Grounding DINO",
    ),
    source="Carion et al. 2020, arXiv 2005.12872, appendix A.4, and their code",
    idea=Words(
        "Sinusoids of row and column where every image, whatever its size and padding, spans the range from 0 to "
        "2π. DETR adds them to queries and keys of every layer; here they are added to what goes in. It has no "
        "parameters.",
        "行与列的正弦编码，任何大小、任何填充的图像都覆盖 0 到 2π。DETR 在每层加到查询和键上；这里加到输入上。没有参数。",
    ),
    latex=r"x + [\, \mathrm{PE}(y) \,|\, \mathrm{PE}(x) \,], \quad y, x \in \{ 2\pi n / N \}_{n = 1 \dots N}",
    breaks=Words(
        "The same object moves to other coordinates when the image around it grows, since counts are divided by the size.",
        "计数除以图像大小，因此图像变大时，同一物体的坐标会改变。",
    ),
    differs=Words(
        "Added to the input; DETR adds it to queries and keys of every layer.",
        "加到输入上；DETR 加到每一层的查询和键上。",
    ),
    code="facebookresearch/detr",
    options={
        "base": "频率的底数，在 DETR 代码中称 temperature；一些后继模型取 20",
        "d_model": "通道数，4 的倍数",
    },
)
