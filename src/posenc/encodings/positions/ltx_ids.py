"""LTX-Video's positions: seconds and pixels as shares of 20 seconds and of 2048 pixels, from -1 on.

    patch (τ, y, x)    (2·8τ/(rate·20) - 1,  2·32y/2048 - 1,  2·32x/2048 - 1)

A latent frame is 8 frames and a patch 32 pixels. The frame rate is part of the position, so that a video in slow motion is
told from a fast one. HaCohen et al. 2024, "LTX-Video", section 2, with the numbers of diffusers' pipeline_ltx.py and
transformer_ltx.py. Text is in cross attention and has no positions. Coordinates are read by
posenc.encodings.of_families.wide_rope.
"""

from __future__ import annotations

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def ltx_ids(
    frames: int,
    height: int,
    width: int,
    *,
    frame_rate: float = 25.0,
    seconds: float = 20.0,
    pixels: int = 2048,
    frames_of_latent: int = 8,
    pixels_of_patch: int = 32,
) -> Positions:
    """Coordinates (time, row, column) of the patches of a video, in real numbers.

    frames            latent frames
    height, width     patches of a frame
    frame_rate        frames of a second
    seconds           at which time is 1
    pixels            at which row and column are 1
    frames_of_latent  frames of a latent frame
    pixels_of_patch   pixels of a patch along each side

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(frames=frames, pixels=pixels, frames_of_latent=frames_of_latent, pixels_of_patch=pixels_of_patch)
    checks.positive(frame_rate=frame_rate, seconds=seconds)
    side = pixels_of_patch / pixels
    share = torch.tensor([frames_of_latent / (frame_rate * seconds), side, side], dtype=torch.float64)
    return Positions.at(2 * Positions.grid(frames, height, width).coords * share - 1)
