"""Cameras: a patch of one of several images lies at its row and column, and at the camera that took the image.

    patch (y, x) of camera c     (y, x, P_c),   P_c = K_c T_c: world to camera, and to the image where K is given

T is [R t; 0 1] and K holds the focal lengths and the centre in units of the image, so that P is [A b; 0 1] and its first
three rows, 12 numbers, say all. posenc.create("prope", …) reads them with K, posenc.create("gta", …) without.
Li et al. 2025, "Cameras as Relative Positional Encoding", section 3; Miyato et al. 2023 (GTA), section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Float

TOLERANCE = 1e-3  # by which RᵀR may differ from 1, since poses come in float32 and from estimates


@checked
def cameras(
    poses: Float[Tensor, "b c 4 4"],
    height: int,
    width: int,
    *,
    intrinsics: Float[Tensor, "b c 3 3"] | None = None,
    image_height: float = 1.0,
    image_width: float = 1.0,
    fractions: bool = False,
) -> Positions:
    """Coordinates [b, c·height·width, 14] of the patches of every camera, row by row: y, x and P's first three rows.

    poses         T, world to camera: a rotation and a translation
    height, width  of an image, in patches
    intrinsics    K in pixels, without skew; None: P is T
    image_height  of the image in pixels, by which K is divided
    image_width   likewise
    fractions     rows and columns as fractions of the image, from 0 to below 1, instead of whole numbers: for GTA

    Raises ValueError for matrices that are not of this form.
    """
    checks.whole(height=height, width=width)
    checks.positive(image_height=image_height, image_width=image_width)
    with_values(poses=poses)
    to_image = _pose(poses)
    if intrinsics is not None:
        with_values(intrinsics=intrinsics)
        to_image = _lens(intrinsics, image_height, image_width) @ to_image
    batch, count = poses.shape[:2]
    rows, columns = torch.arange(height, dtype=torch.float64), torch.arange(width, dtype=torch.float64)
    if fractions:
        rows, columns = rows / height, columns / width
    patch = torch.cartesian_prod(rows, columns).to(poses.device).expand(batch, count, -1, -1)
    camera = to_image.flatten(2)[:, :, None].expand(-1, -1, height * width, -1)
    return Positions.at(torch.cat([patch, camera], dim=-1).flatten(1, 2))


def _pose(poses: Tensor) -> Float[Tensor, "b c 3 4"]:
    """The first three rows, in fp64."""
    poses = poses.double()
    turn, last = poses[..., :3, :3], poses[..., 3, :]
    eye = torch.eye(4, dtype=torch.float64, device=poses.device)
    if not bool(poses.isfinite().all()) or bool((poses.abs() > 1e15).any()):
        raise ValueError("poses: expected numbers up to 1e15, got a larger one, an infinity or NaN")
    if bool((last != eye[3]).any()) or bool(((turn @ turn.mT - eye[:3, :3]).abs() > TOLERANCE).any()):
        raise ValueError("poses: expected [R t; 0 0 0 1] with a rotation R, got another matrix")
    return poses[..., :3, :]


def _lens(intrinsics: Tensor, height: float, width: float) -> Float[Tensor, "b c 3 3"]:
    """K in units of the image, its centre at 0."""
    matrix = intrinsics.double()
    focal, centre = matrix.diagonal(dim1=-2, dim2=-1)[..., :2], matrix[..., :2, 2]
    size = torch.tensor([width, height], dtype=torch.float64, device=matrix.device)
    scaled = torch.diag_embed(torch.cat([focal / size, torch.ones_like(focal[..., :1])], dim=-1))
    plain = torch.diag_embed(torch.cat([focal, torch.ones_like(focal[..., :1])], dim=-1))
    plain[..., :2, 2] = centre
    if not bool(matrix.isfinite().all()) or bool((focal <= 0).any()) or bool((matrix.abs() > 1e15).any()):
        raise ValueError("intrinsics: expected positive focal lengths and numbers up to 1e15")
    if not torch.equal(plain, matrix):
        raise ValueError("intrinsics: expected [fx 0 cx; 0 fy cy; 0 0 1], got another matrix")
    scaled[..., :2, 2] = centre / size - 0.5
    return scaled
