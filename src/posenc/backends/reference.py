"""Attention written out: the definition the other backends are held to.

Legend: b batch, h query heads, g key heads, i query, j key, d channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, working_dtype
from posenc.positions import Positions, may_attend

if TYPE_CHECKING:
    from jaxtyping import Float


def refuses(encoding: PositionalEncoding) -> str | None:
    return None


def refuses_call(q: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool) -> str | None:
    return None


def attend(
    q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool
) -> Tensor:
    """softmax(context(q·k·scale + bias))·v + value, in float32 (float64 for float64), rounded once at the end.

    A query that may see no key gets zeros.
    """
    probs = probabilities(q, k, encoding, at_q, at_k, causal)
    out = probs @ v.to(probs.dtype).repeat_interleave(q.shape[1] // v.shape[1], dim=1)
    if (addend := encoding.value(probs, at_q, at_k)) is not None:
        out = out + addend
    return out.to(q.dtype)


def probabilities(
    q: Tensor, k: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool
) -> Float[Tensor, "b h i j"]:
    """softmax(context(q·k·scale + bias)) of rotated q and k; zeros where a query may see no key."""
    dtype, groups = working_dtype(q.dtype), q.shape[1] // k.shape[1]
    wide_q = q.to(dtype)
    wide_k = k.to(dtype).repeat_interleave(groups, dim=1)

    logits = wide_q @ wide_k.transpose(-1, -2) * encoding.softmax_scale(q.shape[-1])
    if (bias := encoding.bias(wide_q, wide_k, at_q, at_k)) is not None:
        logits = logits + bias(*index_grid(logits))
    allowed = may_attend(at_q, at_k, causal)
    logits = encoding.context(logits, wide_q, at_q, at_k, allowed)
    return logits.masked_fill(~allowed, float("-inf")).softmax(dim=-1).masked_fill(~allowed, 0.0)


def index_grid(logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """b, h, i, j of every logit, each a vector along its own axis."""
    return tuple(
        torch.arange(size, device=logits.device).view(*[-1 if axis == own else 1 for axis in range(4)])
        for own, size in enumerate(logits.shape)
    )  # type: ignore[return-value]
