"""Sinusoids of two coordinates: half of the channels hold the column, half the row.

    x + [sin xω | cos xω | sin yω | cos yω],   ω_i = base^(-2i/(d/2))

Parmar et al. 2018, "Image Transformer", section 3.1; the layout is that of He et al. 2021, "Masked Autoencoders Are
Scalable Vision Learners", and their code. A token with a negative coordinate gets nothing: the class token, which
`Positions.grid(height, width, prefix=1)` puts at (-1, 0).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.support import checks
from posenc.support.checked import checked


@checked
def sinusoidal_2d(d_model: int, *, base: float = 10000.0) -> Sinusoidal:
    """`Sinusoidal` of two axes, column before row; positions are (y, x), as Positions.grid gives them.

    d_model  channels, a multiple of 4
    base     the slowest pair turns once in about 2π·base patches

    Raises ValueError for a width that cannot be shared.
    """
    checks.multiple(4, d_model=d_model)
    return Sinusoidal(d_model, base=base, axes=2, reads=(1, 0), layout="sin_cos", silent="outside")


ENTRY = Entry(
    name="sinusoidal_2d",
    class_name="Sinusoidal",
    builder="sinusoidal_2d",
    title="2-D sinusoidal",
    kind="added",
    published="2018-02",
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="x + [sin, cos of xω | sin, cos of yω]",
    also_called=("2d_sincos", "sincos_2d", "get_2d_sincos_pos_embed", "PositionalEncoding2D"),
    used_by=("ViT-MAE", "MoCo v3", "RT-DETR", "AIMv2-native"),
)
