"""Checks of tensors given as arguments, as `checks` has them for numbers: one place for the messages.

    tensor_checks.floating("[b, t, d]", x=x)    TypeError: x: expected a tensor [b, t, d] of real numbers, got None

The first argument names the axes, as the messages give them; how many there are is what is checked.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from posenc.checks import shown

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The dtypes of whole numbers that torch computes with."""


def any_tensor(axes: str, /, **tensors: Any) -> None:
    """Raises TypeError for what is not a tensor, ValueError for another number of axes."""
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: expected a tensor {axes}, got {shown(value)}")
        _check_axes(name, value, axes)


def floating(axes: str, /, **tensors: Any) -> None:
    """`any_tensor`, and TypeError for integers, booleans and complex numbers."""
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: expected a tensor {axes} of real numbers, got {shown(value)}")
        if not value.is_floating_point():
            raise TypeError(f"{name}: expected real numbers, got {value.dtype}; convert it with .float() or .to(dtype)")
        _check_axes(name, value, axes)


def integers(axes: str, /, **tensors: Any) -> None:
    """`any_tensor`, and TypeError for what does not hold whole numbers."""
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: expected an integer tensor {axes}, got {shown(value)}")
        if value.dtype not in INTEGERS:
            raise TypeError(f"{name}: expected integers, got {value.dtype}")
        _check_axes(name, value, axes)


def with_values(**tensors: Tensor) -> None:
    """Raises ValueError for a tensor without elements, or whose elements have no values (meta)."""
    for name, value in tensors.items():
        if value.device.type == "meta" or not value.numel():
            raise ValueError(f"{name}: expected at least one number, got {shown(value)} on {value.device}")


def _check_axes(name: str, value: Tensor, axes: str) -> None:
    if value.ndim != axes.count(",") + 1:
        raise ValueError(f"{name}: expected a tensor {axes}, got the shape {list(value.shape)}")
