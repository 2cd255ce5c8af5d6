"""The rotation in an exported graph: ONNX's own operator where that computes the same, else the formula in plain torch.

ONNX has the rotation of pairs as an operator since opset 23, RotaryEmbedding. It turns the first channels of every head, in
either layout, and returns the layout it was given; cos and sin have the dtype of x and no axis of heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.kernels.rotation.plain import in_torch


def exported(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    """`in_torch` with the same arguments."""
    if not (torch.onnx.is_in_onnx_export() and _is_rotary_embedding(x, cos, half_in, half_out)):
        return in_torch(x, cos, sin, start, half_in, half_out, back)
    cos, sin = (table.expand(x.shape[0], -1, -1) for table in (cos, -sin if back else sin))
    turned = torch.onnx.ops.rotary_embedding(
        x[..., start:], cos, sin, interleaved=not half_in, num_heads=x.shape[1], rotary_embedding_dim=2 * cos.shape[-1]
    )
    return torch.cat([x[..., :start], turned], dim=-1) if start else turned


def _is_rotary_embedding(x: Tensor, cos: Tensor, half_in: bool, half_out: bool) -> bool:
    return x.dtype == cos.dtype == torch.float32 and cos.ndim == 3 and half_in == half_out
