"""sin and cos of position times frequency, computed in fp64 and rounded once: the tables of sinusoids and rotations.

For consecutive positions the notes' own theorem does the work, PE(p+k) = M_k·PE(p): sin and cos are taken for one block
of positions and for the block starts, and every other entry is one complex product of the two. Arbitrary positions are
computed one by one. Both stay within one rounding of fp64 to position 1 000 000 and beyond.

Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

BLOCK = 16384  # entries of a block: 256 KiB of complex fp64 stay in the cache, and torch keeps so few on one thread


def phasors(at: Positions, frequencies: Sequence[Sequence[float]], dtype: torch.dtype) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) of coordinate times frequency; `frequencies` holds one list per coordinate axis, concatenated in n."""
    coords = at.coords if at.coords.ndim == 3 else at.coords[..., None]
    if at.consecutive and len(frequencies) == 1 and not coords.is_floating_point():
        starts = coords[:1, 0, 0] if coords.stride(0) == 0 else coords[:, 0, 0]  # arange() repeats one row
        table: Tensor = torch.ops.posenc.consecutive_phasors(starts, coords.shape[1], list(frequencies[0]), dtype)
        return table.expand(coords.shape[0], -1, -1, -1)
    per_axis = [anywhere(coords[..., axis], list(of_axis), dtype) for axis, of_axis in enumerate(frequencies)]
    return per_axis[0] if len(per_axis) == 1 else torch.cat(per_axis, dim=2)


def anywhere(coords: Num[Tensor, "b t"], frequencies: list[float], dtype: torch.dtype) -> Float[Tensor, "b t n 2"]:
    """One sin and one cos for each position and frequency, whatever the positions."""
    angle = coords.double()[..., None] * torch.tensor(frequencies, dtype=torch.float64, device=coords.device)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).to(dtype)


def consecutive(
    starts: Int[Tensor, "b"], length: int, frequencies: list[float], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """The same for starts[b], starts[b]+1, …: sin θ + i·cos θ = i·e^(-iθ), so that a product adds the angles.

    An operator of its own, so that a compiled graph holds one node and no complex number. Registered by hand: the
    decorator for it would import torch's compiler, two seconds, at the first table.
    """
    omega = torch.tensor(frequencies, dtype=torch.float64, device=starts.device)
    block = min(max(BLOCK // len(frequencies), 1), length)
    turn = torch.polar(torch.ones_like(omega), -torch.arange(block, device=omega.device)[:, None] * omega)
    first = torch.arange(0, length, block, device=omega.device)
    angle = (starts[:, None] + first).double()[..., None] * omega
    begin = torch.complex(angle.sin(), angle.cos())  # [b, blocks, n]
    table = torch.empty(len(starts), length, len(frequencies), 2, dtype=dtype, device=starts.device)
    product = torch.empty_like(turn)
    for row in range(len(starts)):
        for number in range(begin.shape[1]):
            torch.mul(turn, begin[row, number], out=product)
            part = table[row, number * block : (number + 1) * block]
            part.copy_(torch.view_as_real(product)[: part.shape[0]])
    return table


def _consecutive_shape(starts: Tensor, length: int, frequencies: list[float], dtype: torch.dtype) -> Tensor:
    return torch.empty(starts.shape[0], length, len(frequencies), 2, dtype=dtype, device=starts.device)


_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_LIBRARY.define("consecutive_phasors(Tensor starts, SymInt length, float[] frequencies, ScalarType dtype) -> Tensor")
_LIBRARY.impl("consecutive_phasors", consecutive, "CompositeExplicitAutograd")
_LIBRARY._register_fake("consecutive_phasors", _consecutive_shape)
