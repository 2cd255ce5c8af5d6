"""Boxes through a linear layer and a layer norm, averaged with what a region looks like: LXMERT.

    (x + norm(W c + b)) / 2

Tan and Bansal 2019, "LXMERT", section 2.1, equation for object-level image embeddings.
Legend: b batch, t tokens, d d_model, c coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class LinearBoxes(AbsoluteEncoding):
    """(x + norm(W c + b)) / 2 for the coordinates c of a box, (x0, y0, x1, y1) as shares of the image.

    d_model   channels
    axes      coordinates per token
    norm_eps  of the layer norm

    Parameters: project [d_model, axes], offset, norm and norm_offset [d_model].
    """

    exact_parameters = ("project",)

    def __init__(self, d_model: int, *, axes: int = 4, norm_eps: float = 1e-12) -> None:
        checks.whole(d_model=d_model, axes=axes)
        checks.positive(norm_eps=norm_eps)
        super().__init__(d_model=d_model, axes=axes, norm_eps=norm_eps)
        self.d_model, self.norm_eps, self.axes = d_model, norm_eps, axes
        self.project = nn.Parameter(torch.empty(d_model, axes))
        nn.init.normal_(self.project, std=0.02)
        self.offset, self.norm_offset = nn.Parameter(torch.zeros(d_model)), nn.Parameter(torch.zeros(d_model))
        self.norm = nn.Parameter(torch.ones(d_model))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at)
        dtype = working_dtype(x.dtype)
        coords = (at.coords if at.coords.ndim == 3 else at.coords[..., None]).to(dtype)
        project, offset, norm, norm_offset = (p.to(dtype) for p in (self.project, self.offset, self.norm, self.norm_offset))
        with full_precision(x):
            box = F.layer_norm(F.linear(coords, project, offset), (self.d_model,), norm, norm_offset, self.norm_eps)
        return ((x.to(dtype) + box) / 2).to(x.dtype)
