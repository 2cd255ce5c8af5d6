"""Matrices of cameras on blocks of four channels: PRoPE's and GTA's brick.

    query  Pᵀq,   key  P⁻¹k,   value  P⁻¹v,   output  P·out
    so that products are q·(P_i P_j⁻¹)k and outputs Σ (P_i P_j⁻¹)v

P is [A b; 0 1], world to camera or to image: its first three rows are the coordinates 2 … 13 of `positions_by("cameras")`.
Legend: b batch, h heads, t tokens, m matrices, c channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import Side

if TYPE_CHECKING:
    from posenc.support.shapes import Float

AXES = 14  # row, column and twelve entries of P


def both_ways(coords: Float[Tensor, "b t 14"]) -> tuple[Float[Tensor, "b t 12"], Float[Tensor, "b t 12"]]:
    """The first three rows of P and of P⁻¹, by cofactors, in fp64."""
    rows = coords[..., 2:].double().unflatten(-1, (3, 4))
    a, b = rows[..., :3], rows[..., 3:]
    x, y, z = a.unbind(dim=-2)
    columns = torch.stack([torch.linalg.cross(y, z), torch.linalg.cross(z, x), torch.linalg.cross(x, y)], dim=-1)
    inverse = columns / (x * columns[..., 0]).sum(dim=-1)[..., None, None]
    back = torch.cat([inverse, -(inverse * b.mT).sum(dim=-1, keepdim=True)], dim=-1)
    return rows.flatten(-2), back.flatten(-2)


def transformed(
    x: Float[Tensor, "b h t c"], forth: Float[Tensor, "b t 12"], back: Float[Tensor, "b t 12"], side: Side
) -> Float[Tensor, "b h t c"]:
    """Blocks of four channels multiplied with the matrix of their side."""
    matrix = (forth if side in ("query", "output") else back).to(x.dtype).unflatten(-1, (3, 4))[:, None, :, None]
    blocks = x.unflatten(-1, (-1, 4))  # [b, h, t, n, 4]
    if side == "query":  # the transpose: rows of P are summed
        turned = (matrix * blocks[..., :3, None]).sum(dim=-2)
        return torch.cat([turned[..., :3], turned[..., 3:] + blocks[..., 3:]], dim=-1).flatten(-2)
    turned = (matrix * blocks[..., None, :]).sum(dim=-1)
    return torch.cat([turned, blocks[..., 3:]], dim=-1).flatten(-2)
