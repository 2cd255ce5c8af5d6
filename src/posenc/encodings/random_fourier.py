"""Random Fourier features: sines and cosines of a Gaussian projection of coordinates between 0 and 1.

    x + [sin 2πz | cos 2πz],   z = (2c - 1)·B,   B ~ N(0, scale²)

Tancik et al. 2020, "Fourier Features Let Networks Learn High Frequency Functions in Low Dimensional Domains", section 5;
Kirillov et al. 2023 (SAM), appendix A. Positions: posenc.positions_by("patch_centres", …, low=0.0, high=1.0).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.fourier import RandomFourier
from posenc.support.checked import checked


@checked
def random_fourier(d_model: int, *, scale: float = 1.0) -> RandomFourier:
    """`RandomFourier` of two coordinates, read as (x, y) as SAM does.

    d_model  channels, an even number
    scale    standard deviation of the matrix when drawn

    Raises ValueError for an odd width.
    """
    return RandomFourier(d_model, reads=(1, 0), scale=scale)


ENTRY = Entry(
    name="random_fourier",
    class_name="RandomFourier",
    builder="random_fourier",
    title="Random Fourier features",
    kind="added",
    published="2020-06",
    needs=("parameters",),
    axes=2,
    positions='posenc.positions_by("patch_centres", height=height, width=width, low=0.0, high=1.0)',
    both_ways=True,
    formula="x + [sin 2πBc, cos 2πBc]",
    also_called=("fourier_features", "gaussian_fourier", "PositionEmbeddingRandom"),
    used_by=("Segment Anything (prompts)",),
)
