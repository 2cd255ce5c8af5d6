"""The PyTorch operators posenc::sin_cos and posenc::sin_cos_table: C++ on the CPU, plain torch elsewhere.

    sin_cos(coords, frequencies, axes, dtype, consecutive)         sin and cos, [b, t, n] each
    sin_cos_table(coords, frequencies, axes, dtype, consecutive)   [b, t, n, 2], sin and cos side by side in memory

    frequencies   n numbers in radians per position
    axes          the coordinate of [b, t, axes] that each frequency reads; empty where coords are [b, t]
    consecutive   every row of coords counts up by one from a whole number

The operators take both as text (text.py says why); the functions of the same names take sequences. There are two because
rotations read sin and cos apart and sinusoids side by side: with one for both, one of the two would copy. Where gradients
of real positions are wanted, under torch.func and in forward mode, both are their formula in plain torch.
Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc.kernels.derivatives import below_autograd
from posenc.kernels.eager import constant, exporting, plain_on_cpu, transformed
from posenc.kernels.sin_cos import native, plain
from posenc.kernels.sin_cos.text import floats, integers, written

Pair = tuple[Tensor, Tensor]


def needs_formula(coords: Tensor) -> bool:
    """Whether sin and cos are to be differentiated, or computed for a batch of torch.func.vmap."""
    if coords.requires_grad:
        return True
    if not transformed():
        return False
    return coords.is_floating_point() or torch._C._functorch.is_functorch_wrapped_tensor(coords)


# sin and cos apart.


def _on_cpu(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Pair:
    if native.functions() is None or dtype not in native.FILLED:
        return in_torch(coords, frequencies, axes, dtype, consecutive)
    sin, cos = _empty(coords, frequencies, axes, dtype, consecutive)
    native.fill(coords, frequencies, axes, consecutive, native.apart(sin, cos))
    return sin, cos


def in_torch(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Pair:
    sin, cos = table_in_torch(coords, frequencies, axes, dtype, consecutive).unbind(-1)
    return sin.contiguous(), cos.contiguous()


def _formula(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Pair:
    angle = plain.angle(coords, *_constants(coords, frequencies, axes))
    return angle.sin().to(dtype), angle.cos().to(dtype)


def _empty(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Pair:
    (b, t), n, device = coords.shape[:2], len(frequencies), coords.device
    return torch.empty(b, t, n, dtype=dtype, device=device), torch.empty(b, t, n, dtype=dtype, device=device)


# sin and cos side by side.


def _table_on_cpu(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Tensor:
    if native.functions() is None or dtype not in native.FILLED:
        return table_in_torch(coords, frequencies, axes, dtype, consecutive)
    table = _empty_table(coords, frequencies, axes, dtype, consecutive)
    native.fill(coords, frequencies, axes, consecutive, native.side_by_side(table))
    return table


def table_in_torch(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Tensor:
    omega, axis = _constants(coords, frequencies, axes)
    if consecutive:
        return plain.consecutive(coords[:, 0], coords.shape[1], omega, dtype)
    return plain.anywhere(coords, omega, axis, dtype)


def _table_formula(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Tensor:
    return plain.anywhere(coords, *_constants(coords, frequencies, axes), dtype)


def _empty_table(
    coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, consecutive: bool
) -> Tensor:
    (b, t), n = coords.shape[:2], len(frequencies)
    return torch.empty(b, t, n, 2, dtype=dtype, device=coords.device)


def _constants(coords: Tensor, frequencies: Sequence[float], axes: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    omega = constant(tuple(frequencies), torch.float64, coords.device)
    return omega, constant(tuple(axes), torch.int64, coords.device) if axes else None


# The operators: each one node in a compiled graph, and no complex number. Registered by hand: the decorator would import
# torch's compiler, two seconds, at the first table.

_LIBRARY = torch.library.Library("posenc", "FRAGMENT")


def _operator(
    name: str,
    returns: str,
    on_cpu: Callable[..., Any],
    in_torch: Callable[..., Any],
    formula: Callable[..., Any],
    empty: Callable[..., Any],
) -> Callable[..., Any]:
    """Registers an operator and returns the function that computes it, by the operator or without."""
    _LIBRARY.define(f"{name}(Tensor coords, str frequencies, str axes, ScalarType dtype, bool consecutive) -> {returns}")
    operator = getattr(torch.ops.posenc, name).default

    def autograd(keyset: Any, coords: Tensor, frequencies: str, axes: str, *options: Any) -> Any:
        if needs_formula(coords):
            return formula(coords, floats(frequencies), integers(axes), *options)
        below = keyset & torch._C._after_autograd_keyset
        return below_autograd(operator, below, coords, frequencies, axes, *options)

    _LIBRARY.impl(name, autograd, "Autograd", with_keyset=True)
    _LIBRARY.impl(name, _reading_text(formula), "FuncTorchBatched")
    _LIBRARY.impl(name, _reading_text(on_cpu), "CPU")
    _LIBRARY.impl(name, _reading_text(in_torch), "CompositeExplicitAutograd")
    _LIBRARY._register_fake(name, _reading_text(empty))

    def compute(coords: Tensor, frequencies: Sequence[float], axes: Sequence[int], *options: Any) -> Any:
        if exporting():
            return formula(coords, frequencies, axes, *options)
        if plain_on_cpu(coords) and not needs_formula(coords):  # the dispatcher takes longer than a small table
            return on_cpu(coords, frequencies, axes, *options)
        return operator(coords, written(frequencies), written(axes), *options)

    return compute


def _reading_text(function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(coords: Tensor, frequencies: str, axes: str, *options: Any) -> Any:
        return function(coords, floats(frequencies), integers(axes), *options)

    return kernel


sin_cos = _operator("sin_cos", "(Tensor, Tensor)", _on_cpu, in_torch, _formula, _empty)
sin_cos_table = _operator("sin_cos_table", "Tensor", _table_on_cpu, table_in_torch, _table_formula, _empty_table)
