"""Keys and values that are stored in fewer bits than they are computed in: bfloat16, float16, or int8 with a scale.

    int8     x ≈ scale · n,  scale = max|x| / 127 over the channels of a head and token,  n = round(x / scale)

A row of int8 carries its scale in four more bytes, [… dh + 4], so that whatever moves tokens moves their scales with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

DTYPES = (torch.bfloat16, torch.float16, torch.int8)
SCALE = torch.float32.itemsize  # bytes after the channels


def packed(x: Float[Tensor, "*s dh"], dtype: torch.dtype) -> Num[Tensor, "*s n"]:
    """As it is stored. Raises RuntimeError for int8 where gradients would have to follow: rounding has none."""
    if dtype is not torch.int8:
        return x.to(dtype)
    if torch.is_grad_enabled() and x.requires_grad:
        raise RuntimeError("cache: int8 has no gradients; call under torch.no_grad(), or store bfloat16")
    scale = (x.abs().amax(dim=-1, keepdim=True) / 127).float().clamp(min=torch.finfo(torch.float32).tiny)
    return torch.cat([(x / scale).round().to(torch.int8), scale.view(torch.int8)], dim=-1)


def unpacked(stored: Num[Tensor, "*s n"], dtype: torch.dtype) -> Float[Tensor, "*s dh"]:
    """As attention reads it."""
    if stored.dtype is not torch.int8:
        return stored.to(dtype)
    scale = stored[..., -SCALE:].contiguous().view(torch.float32)
    return stored[..., :-SCALE].to(dtype) * scale.to(dtype)


def width(stored: Num[Tensor, "*s n"]) -> int:
    """Channels of a head."""
    return stored.shape[-1] - SCALE * (stored.dtype is torch.int8)
