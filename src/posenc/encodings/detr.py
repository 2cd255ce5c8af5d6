"""DETR's sinusoids: pixels counted along the real part of the image, the count scaled to 2π.

    x + [interleaved sin, cos of y | the same of x],   y, x = count/(last count)·2π, from 1

Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4, and their code.
"""

from __future__ import annotations

from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.entry import Entry


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
        "2π. DETR adds them to queries and keys of every layer; here they are added to what goes in.",
        "行与列的正弦编码，任何大小、任何填充的图像都覆盖 0 到 2π。DETR 在每层加到查询和键上；这里加到输入上。",
    ),
)
