"""Learned Fourier features: waves in learned directions over all coordinates at once, then a small network.

    x + W₂·gelu(W₁·r + c₁) + c₂,   r = [cos(W_r p) | sin(W_r p)]/√f

Li et al. 2021, "Learnable Fourier Features for Multi-Dimensional Spatial Positional Encoding", section 3, algorithm 1.
W_r starts as N(0, γ^-2) and is trained. random_fourier.py has directions that are not.
Legend: b batch, t tokens, a axes, f features, w width, d d_model.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating, full_precision


class LearnableFourier(AbsoluteEncoding):
    """x plus a network of waves of the coordinates, integers or reals; divide a grid by its size for the paper's scale.

    d_model   channels
    axes      coordinates per token
    features  f: waves, half cosines and half sines, even; None: d_model, made even
    width     hidden units; None: d_model
    gamma     γ: W_r starts with the deviation 1/γ

    Parameters: directions [features/2, axes], W_r; inner [width, features], inner_offset [width]; outer [d_model, width],
    outer_offset [d_model]. Angles are computed in fp64. Time O(t·width·(features + d)).
    Raises ValueError for odd features.
    """

    learned_tables = True
    exact_parameters = ("directions",)

    @checked
    def __init__(
        self, d_model: int, *, axes: int = 2, features: int | None = None, width: int | None = None, gamma: float = 1.0
    ) -> None:
        features = d_model + d_model % 2 if features is None else features
        checks.even(features=features)
        checks.positive(gamma=gamma)
        width = d_model if width is None else width
        checks.whole(d_model=d_model, axes=axes, width=width)
        super().__init__(d_model=d_model, axes=axes, features=features, width=width, gamma=gamma)
        self.d_model, self.axes = d_model, axes
        self.directions = nn.Parameter(torch.randn(features // 2, axes) / gamma)
        self.inner, self.inner_offset = nn.Parameter(torch.empty(width, features)), nn.Parameter(torch.empty(width))
        self.outer, self.outer_offset = nn.Parameter(torch.empty(d_model, width)), nn.Parameter(torch.empty(d_model))
        for weight, offset in ((self.inner, self.inner_offset), (self.outer, self.outer_offset)):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(offset, -bound, bound)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """What is added to every token, [b, t, d]."""
        check_coords(self, at)
        floating(dtype)
        coords = (at.coords if at.coords.ndim == 3 else at.coords[..., None]).double()
        with full_precision(self.directions):
            angle = F.linear(coords, self.directions.double())
            waves = torch.cat([angle.cos(), angle.sin()], dim=-1).to(dtype) * (2 * angle.shape[-1]) ** -0.5
            hidden = F.gelu(F.linear(waves, self.inner.to(dtype), self.inner_offset.to(dtype)))
            return (F.linear(hidden, self.outer.to(dtype), self.outer_offset.to(dtype)).clone(),)  # memory of its own
