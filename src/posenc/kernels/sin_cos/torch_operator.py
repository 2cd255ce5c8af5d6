"""The PyTorch operator posenc::sin_cos: C++ on the CPU, plain torch elsewhere and where there are no kernels.

Where gradients of real positions are wanted, under torch.func and in forward mode, it is its formula in plain torch.
Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from posenc.kernels.derivatives import below_autograd
from posenc.kernels.fast_path import constant, transformed
from posenc.kernels.sin_cos import native, plain
from posenc.kernels.sin_cos.text import read


def needs_formula(coords: Tensor) -> bool:
    """Whether sin and cos are to be differentiated, or computed for a batch of torch.func.vmap."""
    if coords.requires_grad:
        return True
    if not transformed():
        return False
    return coords.is_floating_point() or torch._C._functorch.is_functorch_wrapped_tensor(coords)


def on_cpu(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, consecutive: bool, planes: bool) -> Tensor:
    if native.functions() is None or dtype not in native.FILLED:
        return in_torch(coords, frequencies, axes, dtype, consecutive, planes)
    table = _empty(coords, frequencies, axes, dtype, consecutive, planes)
    if consecutive:
        native.fill_in_a_row(coords[:, 0], len(coords), coords.shape[1], native.doubles(frequencies), native.where(table))
    else:
        native.fill_anywhere(coords, native.doubles(frequencies), axes, native.where(table))
    return table


def in_torch(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, consecutive: bool, planes: bool) -> Tensor:
    omega = constant(tuple(read(frequencies)), torch.float64, coords.device)
    if consecutive:
        table = plain.consecutive(coords[:, 0], coords.shape[1], omega, dtype)
    else:
        table = plain.anywhere(coords, omega, _axes(axes, coords), dtype)
    return table.movedim(-1, 0).contiguous().movedim(0, -1) if planes else table


def formula(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, *layout: Any) -> Tensor:
    omega = constant(tuple(read(frequencies)), torch.float64, coords.device)
    return plain.anywhere(coords, omega, _axes(axes, coords), dtype)


def _axes(axes: str, coords: Tensor) -> Tensor | None:
    return constant(tuple(read(axes, int)), torch.int64, coords.device) if axes else None


def _autograd(keyset: Any, coords: Tensor, *options: Any) -> Tensor:
    if needs_formula(coords):
        return formula(coords, *options)
    return below_autograd(OPERATOR, keyset & torch._C._after_autograd_keyset, coords, *options)  # type: ignore[no-any-return]


def _empty(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, consecutive: bool, planes: bool) -> Tensor:
    (b, t), n = coords.shape[:2], frequencies.count(",") + 1
    strides = (t * n, n, 1, b * t * n) if planes else (t * n * 2, n * 2, 2, 1)
    return torch.empty_strided((b, t, n, 2), strides, dtype=dtype, device=coords.device)


# One node in a compiled graph, and no complex number. Registered by hand: the decorator would import torch's compiler, two
# seconds, at the first table.
_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_LIBRARY.define(
    "sin_cos(Tensor coords, str frequencies, str axes, ScalarType dtype, bool consecutive, bool planes) -> Tensor"
)
OPERATOR = torch.ops.posenc.sin_cos.default
_LIBRARY.impl("sin_cos", _autograd, "Autograd", with_keyset=True)
_LIBRARY.impl("sin_cos", formula, "FuncTorchBatched")
_LIBRARY.impl("sin_cos", on_cpu, "CPU")
_LIBRARY.impl("sin_cos", in_torch, "CompositeExplicitAutograd")
_LIBRARY._register_fake("sin_cos", _empty)
