"""Checks of tensors that annotations cannot say; `checked` makes the others from the annotations."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.support.checks import shown

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The dtypes of whole numbers that torch computes with."""


def floating(dtype: torch.dtype) -> None:
    """Raises TypeError for what is no dtype of real numbers."""
    if type(dtype) is not torch.dtype or not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating torch.dtype, got {shown(dtype)}")


def on_device_of(parameter: Tensor, **tensors: Tensor) -> None:
    """Raises ValueError for a tensor that is not on the device of the parameter."""
    for name, value in tensors.items():
        if value.device != parameter.device:
            raise ValueError(f"{name}: expected to be on {parameter.device} as the parameters are, got {value.device}")


def with_values(**tensors: Tensor) -> None:
    """Raises ValueError for a tensor without elements, or whose elements have no values (meta)."""
    for name, value in tensors.items():
        if value.device.type == "meta" or not value.numel():
            raise ValueError(f"{name}: expected at least one number, got {shown(value)} on {value.device}")


def every_row(tensor: Tensor) -> Tensor:
    """The tensor behind those of torch.func: with the values of every row that vmap runs over, which can be checked."""
    if not torch.compiler.is_compiling():
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def readable(tensor: Tensor) -> bool:
    """Whether values may be read: in eager mode on the CPU. Elsewhere reading would synchronise or break a graph.

    Inside torch.func a tensor may stand for a whole batch, so nothing can be read there.
    """
    if torch.compiler.is_compiling() or type(tensor) not in (Tensor, torch.nn.Parameter) or not tensor.is_cpu:
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
