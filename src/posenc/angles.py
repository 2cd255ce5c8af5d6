"""sin and cos of the angle of every rotating pair: one coordinate or several, fp64 or, for parity, fp32 arithmetic.

Legend: b batch, t tokens, n pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.frequencies import Frequencies
from posenc.kernels import sin_cos as phasors
from posenc.kernels.fast_path import constant
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float, Num


def sin_cos(
    at: Positions, frequencies: Frequencies, dtype: torch.dtype
) -> tuple[Float[Tensor, "b t n"], Float[Tensor, "b t n"]]:
    """sin and cos of coordinate times frequency, each pair reading its own axis; both contiguous on every row."""
    if frequencies.arithmetic == "float64":
        axes = frequencies.axes if frequencies.n_axes > 1 else ()
        return phasors.apart(at, frequencies.values, axes, dtype)
    angle = of_pairs(at.coords, frequencies).to(torch.float32)
    angle = angle * constant(frequencies.values, torch.float32, angle.device)
    return angle.sin().to(dtype), angle.cos().to(dtype)


def of_pairs(coords: Num[Tensor, "b t *axes"], frequencies: Frequencies) -> Num[Tensor, "b t n"]:
    """The coordinate that each pair reads."""
    if frequencies.n_axes == 1:
        return coords[..., None]
    return coords[..., constant(frequencies.axes, torch.int64, coords.device)]
