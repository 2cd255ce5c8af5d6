"""sin and cos of position times frequency, computed in fp64 and rounded once: the tables of rotations and sinusoids.

For consecutive positions a shift is a rotation, PE(p+k) = M_k·PE(p) (Vaswani et al. 2017, section 3.5): sin and cos are
taken for one block of positions and for the block starts; every other entry is one complex product of the two. Arbitrary
positions are computed one by one. Both stay within one rounding of fp64 to position 1 000 000 and beyond.

    plain           the formula in plain torch
    native          the C++ kernels (sin_cos.cpp), for the CPU
    text            frequencies as the operator takes them
    torch_operator  the PyTorch operator that chooses among them

Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.frequencies import Frequencies
from posenc.kernels.fast_path import constant, exporting, plain_on_cpu
from posenc.kernels.sin_cos import native
from posenc.kernels.sin_cos.text import spelt
from posenc.kernels.sin_cos.torch_operator import OPERATOR, formula, needs_formula, on_cpu
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.shapes import Float, Int, Num


def sin_cos(
    at: Positions, frequencies: Frequencies, dtype: torch.dtype
) -> tuple[Float[Tensor, "b t n"], Float[Tensor, "b t n"]]:
    """sin and cos of coordinate times frequency, each pair reading its own axis; both contiguous on every row.

    In fp64, or in fp32 where the frequencies ask for the arithmetic of another library.
    """
    if frequencies.arithmetic != "float64" or exporting():
        arithmetic = torch.float64 if frequencies.arithmetic == "float64" else torch.float32
        angle = coordinate_of_pairs(at.coords, frequencies).to(arithmetic)
        angle = angle * constant(frequencies.values, arithmetic, angle.device)
        return angle.sin().to(dtype), angle.cos().to(dtype)
    values, axes = frequencies.values, frequencies.axes if frequencies.n_axes > 1 else ()
    coords, consecutive = _read(at, axes)
    if not plain_on_cpu(coords) or coords.requires_grad or dtype not in native.FILLED or native.functions() is None:
        sin, cos = _table(coords, values, axes, dtype, consecutive, planes=True).unbind(-1)
        # A graph takes both as inputs without asking where in one memory they begin.
        return sin, cos if torch.compiler.is_compiling() else cos.clone()
    rows = coords[:1] if consecutive and coords.stride(0) == 0 else coords  # arange() repeats one row
    (b, t), n = rows.shape[:2], len(values)
    sin, cos = torch.empty(b, t, n, dtype=dtype), torch.empty(b, t, n, dtype=dtype)
    where = sin.data_ptr(), cos.data_ptr(), native.strides_of(t * n, n, 1), dtype == torch.float64
    if consecutive:
        native.fill_in_a_row(rows if b == 1 else rows[:, 0], b, t, native.numbers(tuple(values)), where)
    else:
        native.fill_anywhere(rows, native.numbers(tuple(values)), spelt(axes), where)
    return (sin, cos) if b == len(coords) else (sin.expand(len(coords), -1, -1), cos.expand(len(coords), -1, -1))


def sin_cos_table(at: Positions, frequencies: Sequence[Sequence[float]], dtype: torch.dtype) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) side by side; `frequencies` holds one list per coordinate axis, concatenated in n."""
    axes = [axis for axis, of_axis in enumerate(frequencies) for _ in of_axis] if len(frequencies) > 1 else ()
    values = [one for of_axis in frequencies for one in of_axis] if axes else frequencies[0]
    coords, consecutive = _read(at, axes)
    return _table(coords, values, axes, dtype, consecutive, planes=False)


def sin_cos_of_runs(
    starts: Int[Tensor, "b"], length: int, frequencies: Sequence[float], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) side by side at starts[b], starts[b] + 1, …: whole positions that a forward computed and nobody reads."""
    coords = starts[:, None] + torch.arange(length, device=starts.device)
    return _table(coords, frequencies, (), dtype, True, planes=False)


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
    coords: Tensor, values: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool, *, planes: bool
) -> Float[Tensor, "b t n 2"]:
    """(sin, cos). In memory they are neighbours, [b, t, n, 2], or, with `planes`, apart: [2, b, t, n]."""
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype: expected a floating dtype, got {dtype!r}")
    rows = coords[:1] if consecutive and coords.stride(0) == 0 else coords  # arange() repeats one row
    compute: Callable[..., Tensor] = on_cpu if plain_on_cpu(rows) and not needs_formula(rows) else OPERATOR
    if exporting():
        compute = formula
    table = compute(rows, spelt(values), spelt(axes), dtype, consecutive, planes)
    # Not len(): in an exported graph that would fix the batch.
    return table if rows.shape[0] == coords.shape[0] else table.expand(coords.shape[0], -1, -1, -1)
