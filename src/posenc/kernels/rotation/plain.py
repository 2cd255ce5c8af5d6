"""The rotation in plain torch: the formula that the kernels must reproduce, used for all higher derivatives.

Legend: b batch, h heads, t tokens, d channels, n pairs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout


def in_torch(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    """x with its 2n channels from `start` on turned, by the negative angle if `back`."""
    cos, sin = by_head(cos), by_head(sin)
    turned = layouts.turn(x[..., start:], cos, -sin if back else sin, layout_of(half_in), layout_of(half_out))
    return torch.cat([x[..., :start], turned], dim=-1) if start else turned


def by_head(table: Tensor) -> Tensor:
    """[b, t, n] as [b, 1, t, n]; a table with an axis of heads as it is."""
    return table if table.ndim == 4 else table.unsqueeze(1)


def layout_of(half: bool) -> Layout:
    return "half" if half else "interleaved"
