"""The PyTorch operator posenc::relative_attention and its derivatives.

Under torch.func and in forward mode the operator is its formula in plain torch. Gradients that are differentiated again
are those of the formula too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from posenc.attention.backends.relative.attention import relative_attention, relative_attention_backward
from posenc.attention.backends.relative.plain import in_torch
from posenc.kernels.derivatives import autograd_kernel, below_autograd, differentiable_gradients, in_full_precision


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, below: Any, *arguments: Any) -> Tensor:
        *tensors, ctx.scale = arguments
        ctx.save_for_backward(*tensors)
        return below_autograd(ATTENTION, below, *arguments)  # type: ignore[no-any-return]

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors  # once: checkpointing computes them again at every look
        if torch.is_grad_enabled():  # to be differentiated again
            return None, *differentiable_gradients(in_torch, (*tensors, ctx.scale), (gradient,))
        *gradients, of_values = _BACKWARD(gradient, *tensors, ctx.scale)
        return None, *gradients, None if tensors[5] is None else of_values, None, None, None


def _shape(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Tensor:
    return v.new_empty(*q.shape[:3], v.shape[3])


def _shapes(
    gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Tensor, keys: Tensor, values: Tensor | None, *others: Any
) -> tuple[Tensor, ...]:
    of_values = v.new_empty(0) if values is None else values.new_empty(values.shape)
    return (*(x.new_empty(x.shape) for x in (q, k, v, p, keys)), of_values)


# Registered by hand: the decorators import torch's compiler.
_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor p, Tensor keys, Tensor? values, Tensor row, Tensor? seen, float scale"
_LIBRARY.define(f"relative_attention({_INPUTS}) -> Tensor")
_LIBRARY.define(
    f"relative_attention_backward(Tensor gradient, {_INPUTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
ATTENTION = torch.ops.posenc.relative_attention.default
_BACKWARD = torch.ops.posenc.relative_attention_backward.default
_LIBRARY.impl("relative_attention", autograd_kernel(ATTENTION, _Differentiable, in_torch), "Autograd", with_keyset=True)
_LIBRARY.impl("relative_attention", in_torch, "FuncTorchBatched")
_LIBRARY.impl("relative_attention", relative_attention, "CPU")
_LIBRARY.impl("relative_attention_backward", relative_attention_backward, "CPU")
_LIBRARY._register_fake("relative_attention", _shape)
_LIBRARY._register_fake("relative_attention_backward", _shapes)
