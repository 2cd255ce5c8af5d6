"""Sinusoids of three coordinates: a quarter of the channels for the frame, the rest for column and row.

    x + [sin τω, cos τω | sin xω', cos xω' | sin yω', cos yω'],   ω_i = base^(-2i/(d/4)), ω'_i = base^(-2i/(3d/8))

Yang et al. 2024, "CogVideoX"; the code is diffusers' get_3d_sincos_pos_embed, which CogVideoXPatchEmbed adds in the 2B
model. A token with a negative coordinate gets nothing: text.
Legend: b batch, t tokens, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encoding import AbsoluteEncoding
from posenc.encodings.bases.coordinates import select, silent_tokens
from posenc.encodings.sinusoidal import arrange
from posenc.kernels.sin_cos import sin_cos_table
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class Sinusoidal3D(AbsoluteEncoding):
    """x + PE(frame, row, column), the frame in d/4 channels, column and row in 3d/8 each. No parameters.

    d_model      channels, a multiple of 16
    base         the slowest pair turns once in about 2π·base positions
    frame_step   frames are divided by it; 1 in CogVideoX-2B
    patch_step   rows and columns are divided by it: 1.875 in CogVideoX-2B

    Raises ValueError for a width that cannot be shared.
    """

    axes = 3

    @checked
    def __init__(self, d_model: int, *, base: float = 10000.0, frame_step: float = 1.0, patch_step: float = 1.875) -> None:
        checks.multiple(16, d_model=d_model)
        checks.positive(frame_step=frame_step, patch_step=patch_step)
        super().__init__(d_model=d_model, base=base, frame_step=frame_step, patch_step=patch_step)
        self.d_model = d_model
        self.blocks = tuple(
            (axis, width, tuple(f / step for f in frequencies.rotary(width, base)))
            for axis, width, step in (
                (0, d_model // 4, frame_step),
                (2, 3 * d_model // 8, patch_step),
                (1, 3 * d_model // 8, patch_step),
            )
        )

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Float[Tensor, "b t d"]]:
        check_coords(self, at)
        parts = [
            arrange(sin_cos_table(select(at, (axis,)), (values,), dtype), width, "sin_cos")
            for axis, width, values in self.blocks
        ]
        return (torch.cat(parts, dim=-1).masked_fill(silent_tokens(at, "outside")[..., None], 0),)
