"""Tables of sin and cos in plain torch: the formula, and the same by products for consecutive positions.

Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int, Num

BLOCK = 16384  # entries of a block: 256 KiB of complex fp64 stay in the cache, and torch keeps so few on one thread


def angle(
    coords: Num[Tensor, "b t *axes"], omega: Float[Tensor, "n"], axes: Int[Tensor, "n"] | None
) -> Float[Tensor, "b t n"]:
    """Coordinate times frequency, in fp64; axes: the coordinate that each frequency reads, None if there is one."""
    read_by = coords[..., None] if axes is None else coords[..., axes]
    return read_by.double() * omega


def anywhere(
    coords: Num[Tensor, "b t *axes"], omega: Float[Tensor, "n"], axes: Int[Tensor, "n"] | None, dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """One sin and one cos for each position and frequency, for any positions."""
    turned = angle(coords, omega, axes)
    return torch.stack([turned.sin(), turned.cos()], dim=-1).to(dtype)


def consecutive(
    starts: Int[Tensor, "b"], length: int, omega: Float[Tensor, "n"], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """The same for starts[b], starts[b]+1, …: sin θ + i·cos θ = i·e^(-iθ), so that a product adds the angles."""
    block = min(max(BLOCK // len(omega), 1), length)
    turn = torch.polar(torch.ones_like(omega), -torch.arange(block, device=omega.device)[:, None] * omega)
    first = torch.arange(0, length, block, device=omega.device)
    angle = (starts[:, None] + first).double()[..., None] * omega
    begin = torch.complex(angle.sin(), angle.cos())  # [b, blocks, n]
    table = torch.empty(len(starts), length, len(omega), 2, dtype=dtype, device=starts.device)
    product = torch.empty_like(turn)
    for row in range(len(starts)):
        for number in range(begin.shape[1]):
            torch.mul(turn, begin[row, number], out=product)
            part = table[row, number * block : (number + 1) * block]
            part.copy_(torch.view_as_real(product)[: part.shape[0]])
    return table
