"""A learned linear map of a token's coordinates, added to its embedding.

    x + W·p + b

Laplacian eigenvectors enter a graph Transformer so: Dwivedi & Bresson 2020, "A Generalization of Transformer Networks to
Graphs", sections 2.2 and 2.3 (arXiv 2012.09699); likewise random-walk encodings in GraphGPS, which concatenates instead of
adding.
It serves any real coordinates: posenc.positions_by("lappe", …) or "rwse".
Legend: b batch, t tokens, a axes, d d_model.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating, full_precision, on_device_of


class CoordinateProjection(AbsoluteEncoding):
    """x + W·p + b.

    d_model  channels of the embedding
    axes     coordinates of a token

    Parameters: weight [d_model, axes], offset [d_model]; fresh, the weight is uniform within ±1/√axes and the offset 0.
    Time O(t·d_model·axes). Raises ValueError for tokens with another number of coordinates.
    """

    learned_tables = True
    exact_parameters = ("weight",)

    @checked
    def __init__(self, d_model: int, *, axes: int = 8) -> None:
        checks.whole(d_model=d_model, axes=axes)
        super().__init__(d_model=d_model, axes=axes)
        self.d_model, self.axes = d_model, axes
        self.weight = nn.Parameter(torch.empty(d_model, axes).uniform_(-(axes**-0.5), axes**-0.5))
        self.offset = nn.Parameter(torch.zeros(d_model))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """What is added, [b, t, d]."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(self.weight, at=at.coords)
        coords = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        with full_precision(self.weight):
            return (F.linear(coords.double(), self.weight.double(), self.offset.double()).to(dtype),)
