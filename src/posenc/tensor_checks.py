"""Checks of tensors that annotations cannot say; `checked` makes the others from the annotations."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checks import shown

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The dtypes of whole numbers that torch computes with."""


def with_values(**tensors: Tensor) -> None:
    """Raises ValueError for a tensor without elements, or whose elements have no values (meta)."""
    for name, value in tensors.items():
        if value.device.type == "meta" or not value.numel():
            raise ValueError(f"{name}: expected at least one number, got {shown(value)} on {value.device}")
