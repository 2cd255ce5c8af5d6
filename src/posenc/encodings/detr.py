"""DETR's sinusoids: pixels counted along the real part of the image, the count scaled to 2π.

    x + [interleaved sin, cos of y | the same of x],   y, x = count/(last count)·2π, from 1

Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4, and their code.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.support import checks
from posenc.support.checked import checked


@checked
def detr(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, row before column; positions are those of posenc.positions_by("pixels", …).

    d_model  channels, a multiple of 4
    base     temperature in DETR's code; 20 in some of its followers

    Raises ValueError for a width that cannot be shared.
    """
    checks.multiple(4, d_model=d_model)
    return Sinusoidal(d_model, base=base, axes=2)


ENTRY = Entry(
    name="detr",
    class_name="Sinusoidal",
    builder="detr",
    title="Sinusoidal of DETR",
    kind="added",
    published="2020-05",
    axes=2,
    positions='posenc.positions_by("pixels", height=height, width=width)',
    both_ways=True,
    formula="x + [sin, cos of y | sin, cos of x], 0 … 2π",
    also_called=("PositionEmbeddingSine", "detr_sine", "DetrSinePositionEmbedding"),
    used_by=("DETR", "Deformable DETR", "MaskFormer", "Grounding DINO"),
)
