"""torch's fused scaled-dot-product attention. What the encoding adds to the logits goes in as the mask.

Legend: b batch, h query heads, i query, j key, d channel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.backends.fused import hidden_from
from posenc.encoding import PositionalEncoding, Site, working_dtype
from posenc.positions import Positions, may_attend


def refuses(encoding: PositionalEncoding) -> str | None:
    return hidden_from(encoding)


def refuses_call(q: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool) -> str | None:
    return None


def attend(
    q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool
) -> Tensor:
    scale = encoding.softmax_scale(q.shape[-1])
    grouped = True if q.shape[1] != k.shape[1] else False  # noqa: SIM210 - a plain bool: inside a graph != is symbolic
    dtype, groups = working_dtype(q.dtype), q.shape[1] // k.shape[1]
    bias = None
    if encoding.sites & Site.BIAS:
        bias = encoding.bias(q.to(dtype), k.to(dtype).repeat_interleave(groups, dim=1), at_q, at_k)

    # Consecutive positions are one document without padding, so one and the same on both sides needs no mask.
    if bias is None and at_q.consecutive and at_k.consecutive and (not causal or at_q is at_k):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped)

    allowed = may_attend(at_q, at_k, causal)
    mask = allowed
    if bias is not None:
        b, h, i, j = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
        term = bias(
            *(
                torch.arange(size, device=q.device).view(*[-1 if axis == own else 1 for axis in range(4)])
                for own, size in enumerate((b, h, i, j))
            )
        )
        mask = term.to(dtype).masked_fill(~allowed, float("-inf"))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped)
    return out.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)  # a query that may see no key gets zeros
