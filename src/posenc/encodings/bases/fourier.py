"""Sines and cosines of projected coordinates: with a random matrix, or with evenly spaced bands for every coordinate.

    random   x + [sin 2πz | cos 2πz],  z = (2c - 1)·B,  B ~ N(0, scale²)                       c in 0 … 1
    bands    x + [c | sin πf_k c | cos πf_k c],  f_k evenly from 1 to half the resolution      c in -1 … 1

Tancik et al. 2020, "Fourier Features Let Networks Learn High Frequency Functions", section 5, as SAM uses them (Kirillov et
al. 2023, appendix A); Jaegle et al. 2021 (Perceiver), section 3.2.
Legend: b batch, t tokens, d d_model, n frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.encodings.bases.coordinates import check_reads, select
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class RandomFourier(AbsoluteEncoding):
    """x + sines and cosines of a Gaussian projection of coordinates from 0 to 1.

    d_model  channels, an even number: first all sines, then all cosines
    axes     coordinates per token
    reads    the coordinates in the order in which the rows of the matrix read them; all in turn unless said. SAM reads
             (x, y): (1, 0) where positions are (y, x)
    scale    standard deviation of the matrix when drawn

    Parameter: matrix [axes read, d/2], drawn once and usually frozen. Angles in fp64, one rounding at the end.
    Raises ValueError for an odd width.
    """

    exact_parameters = ("matrix",)

    def __init__(self, d_model: int, axes: int = 2, *, reads: Sequence[int] | None = None, scale: float = 1.0) -> None:
        checks.even(d_model=d_model)
        checks.whole(axes=axes)
        checks.positive(scale=scale)
        checks.moderate(scale=scale)
        super().__init__(d_model=d_model, axes=axes, reads=reads, scale=scale)
        self.d_model, self.reads = d_model, check_reads(reads, axes)
        self.axes = axes
        self.matrix = nn.Parameter(scale * torch.randn(len(self.reads), d_model // 2))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at)
        dtype = working_dtype(x.dtype)
        coords = select(at, self.reads).coords.double()
        coords = coords[..., None] if coords.ndim == 2 else coords
        with full_precision(x):
            angle = 2 * math.pi * ((2 * coords - 1)[..., None] * self.matrix.double()).sum(dim=-2)
            return (x.to(dtype) + torch.cat([angle.sin(), angle.cos()], dim=-1).to(dtype)).to(x.dtype)


class FourierBands(AbsoluteEncoding):
    """x + coordinates from -1 to 1, and their sines and cosines at evenly spaced frequencies. No parameters.

    n_bands           frequencies of each coordinate, from 1 to half its resolution
    resolution        of each coordinate: (height, width) in pixels, or points along one axis
    with_coordinates  whether the coordinates themselves come first
    sines_only        leaves the cosines out

    d_model follows: axes·n_bands sines, as many cosines, and the axes. Perceiver puts the encoding beside the inputs, not
    onto them: torch.cat([inputs, bands.embed(zeros, at)], dim=-1).
    Raises ValueError for bands or a resolution that are not positive.
    """

    def __init__(
        self, n_bands: int, resolution: Sequence[int], *, with_coordinates: bool = True, sines_only: bool = False
    ) -> None:
        sizes = tuple(resolution)
        super().__init__(n_bands=n_bands, resolution=sizes, with_coordinates=with_coordinates, sines_only=sines_only)
        checks.whole(n_bands=n_bands)
        for size in sizes:
            checks.whole(resolution=size)
        if not sizes:
            raise ValueError("resolution: expected one number for each coordinate, got none")
        self.with_coordinates, self.sines_only = with_coordinates, sines_only
        self.axes = len(sizes)
        self.d_model = len(sizes) * (n_bands * (1 if sines_only else 2) + with_coordinates)
        steps = max(n_bands - 1, 1)
        self.frequencies = tuple(tuple(1 + k * (size / 2 - 1) / steps for k in range(n_bands)) for size in sizes)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        check_coords(self, at)
        coords = at.coords.double()
        coords = coords[..., None] if coords.ndim == 2 else coords
        bands = torch.tensor(self.frequencies, dtype=torch.float64, device=coords.device)
        angle = math.pi * (coords[..., None] * bands).flatten(-2)  # [b, t, axes·n]
        parts = [coords] if self.with_coordinates else []
        parts += [angle.sin()] if self.sines_only else [angle.sin(), angle.cos()]
        return (torch.cat(parts, dim=-1).to(dtype),)


def spread(
    height: int,
    width: int,
    low: float = -1.0,
    high: float = 1.0,
    *,
    corners: bool = True,
    device: torch.device | str | None = None,
) -> Positions:
    """Patches row by row at real (y, x) from `low` to `high`, in fp64.

    corners=True puts the first and last patch on the ends (Perceiver), False puts every patch in the middle of its share:
    low + (i + ½)·(high - low)/n (SAM, from 0 to 1).
    """
    grid = Positions.grid(height, width, device=device)
    count = torch.tensor([height, width], dtype=torch.float64, device=device)
    steps = grid.coords.double()
    share = steps / (count - 1).clamp(min=1) if corners else (steps + 0.5) / count
    return Positions.at(low + share * (high - low))


@checked
def random_fourier(d_model: int, *, scale: float = 1.0) -> RandomFourier:
    """`RandomFourier` of two coordinates, read as (x, y) as SAM does.

    d_model  channels, an even number
    scale    standard deviation of the matrix when drawn

    Raises ValueError for an odd width.
    """
    return RandomFourier(d_model, reads=(1, 0), scale=scale)
