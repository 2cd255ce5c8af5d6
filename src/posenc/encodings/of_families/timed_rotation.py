"""Embeddings rotated by time multiplied with index: audio frames with their second, window and index in the window.

    channel pair i        turns by -2π·t·(w/L)·ω_i        t seconds, w number of the window, L the longest
    channel pair n + i    turns by -2π·t·(2πk/L)·ω_i      k index within the window,          ω_i = base^(-2i/width)

The angle is quadratic in position, since t itself grows with w and k: no function of differences. As Music Flamingo's
released code has it (Ghosh et al. 2025, "Music Flamingo", rotary time embeddings). Channels beyond 4n pass through.
Legend: b batch, t tokens, n frequencies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding
from posenc.frequencies import Frequencies
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_coords, check_embeddings, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class TimedRotation(PositionalEncoding):
    """Turns embeddings, neighbours paired, in fp64; adds nothing.

    d_model      channels
    frequencies  ω, n of them; 4n channels turn. Those of the parity mode make fp32 angles in that library's order
    longest      L, 1200

    Coordinates are real, (seconds, number of the window, index within the window). Raises ValueError where 4n > d_model.
    """

    traits = frozenset({"local", "norm_preserving"})
    axes = 3

    def __init__(self, d_model: int, frequencies: Frequencies, longest: float = 1200.0) -> None:
        super().__init__(d_model=d_model, frequencies=frequencies, longest=longest)
        checks.whole(d_model=d_model)
        checks.positive(longest=longest)
        if not isinstance(frequencies, Frequencies) or frequencies.axes:
            raise ValueError(f"frequencies: expected plain Frequencies without axes, got {frequencies!r}")
        if 4 * len(frequencies) > d_model:
            raise ValueError(
                f"frequencies: {len(frequencies)} turn {4 * len(frequencies)} channels, there are d_model={d_model}"
            )
        self.d_model, self.frequencies, self.longest = d_model, frequencies, longest

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, 2n] each."""
        check_coords(self, at)
        precision = torch.float64 if self.frequencies.arithmetic == "float64" else torch.float32
        omega = constant(self.frequencies.values, precision, at.coords.device)
        time, window, index = (coords[..., None] for coords in at.coords.to(precision).unbind(-1))
        places = torch.cat([window / self.longest * omega, index / self.longest * (2 * math.pi) * omega], dim=-1)
        angle = places * (-time * 2 * math.pi)
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        """x turned."""
        check_embeddings(self, x, at)
        cos, sin = (table.double() for table in tables_at(self, at, x.dtype))
        return rotate(x.double()[:, None], cos, sin, "interleaved")[:, 0].to(x.dtype)
