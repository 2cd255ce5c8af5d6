"""sin and cos of position times frequency, computed in fp64 and rounded once: the tables of rotations and sinusoids.

For consecutive positions a shift is a rotation, PE(p+k) = M_k·PE(p) (Vaswani et al. 2017, section 3.5): sin and cos are
taken for one block of positions and for the block starts; every other entry is one complex product of the two. Arbitrary
positions are computed one by one. Both stay within one rounding of fp64 to position 1 000 000 and beyond.

    plain           the formula in plain torch
    native          the C++ kernels (sin_cos.cpp), for the CPU
    torch_operator  the PyTorch operators that choose among them
    text            frequencies as these operators take them

Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.frequencies import Frequencies
from posenc.kernels.eager import constant
from posenc.kernels.sin_cos import torch_operator
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int, Num


def sin_cos(
    at: Positions, frequencies: Frequencies, dtype: torch.dtype
) -> tuple[Float[Tensor, "b t n"], Float[Tensor, "b t n"]]:
    """sin and cos of coordinate times frequency, each pair reading its own axis; both contiguous on every row.

    In fp64, or in fp32 where the frequencies ask for the arithmetic of another library.
    """
    if frequencies.arithmetic != "float64":
        angle = coordinate_of_pairs(at.coords, frequencies).to(torch.float32)
        angle = angle * constant(frequencies.values, torch.float32, angle.device)
        return angle.sin().to(dtype), angle.cos().to(dtype)
    axes = frequencies.axes if frequencies.n_axes > 1 else ()
    coords, consecutive = _read(at, axes)
    rows = coords[:1] if consecutive and coords.stride(0) == 0 else coords  # arange() repeats one row
    sin, cos = torch_operator.sin_cos(rows, frequencies.values, axes, dtype, consecutive)
    if rows.shape[0] == coords.shape[0]:  # not len(): in an exported graph that would fix the batch
        return sin, cos
    return sin.expand(coords.shape[0], -1, -1), cos.expand(coords.shape[0], -1, -1)


def sin_cos_table(at: Positions, frequencies: Sequence[Sequence[float]], dtype: torch.dtype) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) side by side; `frequencies` holds one list per coordinate axis, concatenated in n."""
    axes = [axis for axis, of_axis in enumerate(frequencies) for _ in of_axis] if len(frequencies) > 1 else ()
    values = [frequency for of_axis in frequencies for frequency in of_axis] if axes else frequencies[0]
    return _table(*_read(at, axes), values, axes, dtype)


def sin_cos_of_runs(
    starts: Int[Tensor, "b"], length: int, frequencies: Sequence[float], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) side by side at starts[b], starts[b] + 1, …, for starts that a forward pass has computed as a tensor."""
    coords = starts[:, None] + torch.arange(length, device=starts.device)
    return _table(coords, True, frequencies, (), dtype)


def coordinate_of_pairs(coords: Num[Tensor, "b t *axes"], frequencies: Frequencies) -> Num[Tensor, "b t n"]:
    """The coordinate that each pair reads."""
    if frequencies.n_axes == 1:
        return coords[..., None]
    return coords[..., constant(frequencies.axes, torch.int64, coords.device)]


def _read(at: Positions, axes: Sequence[int]) -> tuple[Tensor, bool]:
    """The coordinates, [b, t] where there is one axis, and whether they are known to count up by one."""
    coords = at.coords if axes or at.coords.ndim == 2 else at.coords[..., 0]
    return coords, at.consecutive_in == "row" and not axes and not coords.is_floating_point()


def _table(
    coords: Tensor, consecutive: bool, values: Sequence[float], axes: Sequence[int], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype: expected a floating dtype, got {dtype!r}")
    rows = coords[:1] if consecutive and coords.stride(0) == 0 else coords  # arange() repeats one row
    table: Tensor = torch_operator.sin_cos_table(rows, values, axes, dtype, consecutive)
    return table if rows.shape[0] == coords.shape[0] else table.expand(coords.shape[0], -1, -1, -1)
