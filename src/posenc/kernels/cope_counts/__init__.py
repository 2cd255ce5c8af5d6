"""CoPE's term of the logits in one pass over them, in C++ with its gradient: see cope_counts.cpp.

    count_j = Σ_{t ≥ j} σ(logit_t)·seen_t,   p = min(count, n - 1),   logit_j + s[⌊p⌋] + (s[⌈p⌉] - s[⌊p⌋])·(p - ⌊p⌋)

Legend: b batch, h query heads, i query, j key, n whole positions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.derivatives import differentiable_gradients, in_full_precision
from posenc.kernels.eager import plain_on_cpu, wants_gradient

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float

Formula = Callable[[Tensor, Tensor, Tensor], Tensor]

_pack = struct.Struct("17q").pack  # struct CopeCounts


def can_serve(logits: Tensor, scores: Tensor, seen: Tensor) -> bool:
    """Whether `added` can compute this: eager fp32 on the CPU, with the C++ kernels, and one mask for all heads."""
    if logits.dtype != torch.float32 or not plain_on_cpu(logits, scores, seen):
        return False
    return seen.shape[1] == 1 and kernels.function("posenc_cope_counts") is not None


def added(
    logits: Float[Tensor, "b h i j"], scores: Float[Tensor, "b h i n"], seen: Bool[Tensor, "#b 1 i j"], formula: Formula
) -> Float[Tensor, "b h i j"]:
    """The logits with their term, for keys in causal order: the bits of `formula`, which is the same in plain torch and
    whose gradients are differentiated again. Only where `can_serve`."""
    if wants_gradient(logits, scores):
        return _Differentiable.apply(formula, logits, scores, seen)  # type: ignore[no-any-return]
    logits, scores, seen = _in_rows(logits, scores, seen)
    out = torch.empty_like(logits)
    _call(logits.sigmoid(), scores, seen, logits=logits, out=out)
    return out


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, formula: Formula, logits: Tensor, scores: Tensor, seen: Tensor) -> Tensor:
        logits_of_rows, scores_of_rows, seen_of_rows = _in_rows(logits, scores, seen)
        out, counts, gates = torch.empty_like(logits_of_rows), torch.empty_like(logits_of_rows), logits_of_rows.sigmoid()
        _call(gates, scores_of_rows, seen_of_rows, logits=logits_of_rows, out=out, counts=counts)
        ctx.formula = formula
        ctx.save_for_backward(logits, scores, seen, gates, counts)
        return out

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        logits, scores, seen, gates, counts = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again
            return None, *differentiable_gradients(ctx.formula, (logits, scores, seen), (gradient,))
        gradient, scores, seen = _in_rows(gradient, scores, seen)
        of_logits, of_scores = torch.empty_like(gradient), torch.empty_like(scores)
        _call(gates, scores, seen, counts=counts, gradient=gradient, d_logits=of_logits, d_scores=of_scores)
        return None, of_logits, of_scores, None


def _in_rows(like_logits: Tensor, scores: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As the kernel reads them: without gaps, and what is seen for every row of the batch."""
    seen = seen.expand(like_logits.shape[0], 1, *like_logits.shape[2:])
    return like_logits.contiguous(), scores.contiguous(), seen if seen.stride(3) == 1 else seen.contiguous()


def _call(gates: Tensor, scores: Tensor, seen: Tensor, **others: Tensor) -> None:
    def address(name: str) -> int:
        return others[name].data_ptr() if name in others else 0

    kernel = kernels.function("posenc_cope_counts")
    assert kernel is not None
    kernel(
        _pack(
            address("logits"),
            gates.data_ptr(),
            scores.data_ptr(),
            seen.data_ptr(),
            *map(address, ("out", "counts", "gradient", "d_logits", "d_scores")),
            *gates.shape,
            scores.shape[3],
            seen.stride(0),
            seen.stride(2),
            torch.get_num_threads(),
        )
    )
