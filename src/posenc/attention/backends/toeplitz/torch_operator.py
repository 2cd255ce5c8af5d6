"""The PyTorch operator posenc::toeplitz_attention and its derivatives.

Eager code on the CPU calls the implementation directly. Under torch.func and in forward mode the operator is its formula
in plain torch. Gradients that are differentiated again are those of the formula too.
Legend: b batch, h query heads, g key heads, i query, j key, d channel, n = i + j - 1 distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.attention.backends.toeplitz.attention import toeplitz_attention, toeplitz_attention_backward
from posenc.attention.backends.toeplitz.plain import in_torch
from posenc.kernels.derivatives import autograd_kernel, below_autograd, differentiable_gradients, in_full_precision
from posenc.kernels.eager import plain_on_cpu, wants_gradient

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


def attend_by_distance(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    vector: Float[Tensor, "h #b n"],
    ahead: Int[Tensor, "#b"],
    document: Int[Tensor, "b t"] | None,
    scale: float,
    causal: bool,
) -> Float[Tensor, "b h i dv"]:
    """The output of `toeplitz_attention`, differentiable: the operator, or in eager code the implementation directly."""
    arguments = (q, k, v, vector, ahead, document, scale, causal)
    if not plain_on_cpu(q, k, v, vector, ahead):
        return _ATTENTION(*arguments)[0]  # type: ignore[no-any-return]
    if wants_gradient(q, k, v, vector):
        return _Differentiable.apply(None, *arguments)[0]  # type: ignore[no-any-return]
    return toeplitz_attention(*arguments)[0]


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, below: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        out, sums = toeplitz_attention(*arguments) if below is None else below_autograd(_ATTENTION, below, *arguments)
        *tensors, ctx.scale, ctx.causal = arguments
        ctx.save_for_backward(*tensors, out, sums)
        ctx.set_materialize_grads(False)
        ctx.direct = below is None
        return out, sums

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, grad: Tensor | None, grad_sums: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors  # the operator's six tensors and both results
        if torch.is_grad_enabled():  # to be differentiated again
            return None, *differentiable_gradients(in_torch, (*saved[:6], ctx.scale, ctx.causal), (grad, grad_sums))
        learned = ctx.needs_input_grad[4]
        backward = toeplitz_attention_backward if ctx.direct and plain_on_cpu(saved[6]) else _BACKWARD
        grad = torch.zeros_like(saved[6]) if grad is None else grad
        arguments: tuple[Any, ...] = (grad, *saved, grad_sums, ctx.scale, ctx.causal, learned)
        d_q, d_k, d_v, d_vector = backward(*arguments)
        return None, d_q, d_k, d_v, d_vector if learned else None, None, None, None, None


# Registered by hand: the decorators import torch's compiler.


def _fake(
    q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: Tensor, document: Tensor | None, scale: float, causal: bool
) -> tuple[Tensor, Tensor]:
    sums = vector.new_empty(q.shape[0], q.shape[2], q.shape[1]).transpose(1, 2)
    return _like(q, v.shape[3]), sums


def _like(x: Tensor, width: int) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[2], x.shape[1], width).transpose(1, 2)


def _fake_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    vector: Tensor,
    ahead: Tensor,
    document: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    grad_sums: Tensor | None,
    scale: float,
    causal: bool,
    learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    d_vector = vector.new_empty(vector.shape if learned else 0)
    if learned or grad_sums is not None:
        return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), d_vector
    return _like(q, q.shape[3]), _like(k, k.shape[3]), _like(v, v.shape[3]), d_vector


_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_LIBRARY.define(
    "toeplitz_attention(Tensor q, Tensor k, Tensor v, Tensor vector, Tensor ahead, Tensor? document, "
    "float scale, bool causal) -> (Tensor out, Tensor logsumexp)"
)
_LIBRARY.define(
    "toeplitz_attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor vector, Tensor ahead, "
    "Tensor? document, Tensor out, Tensor logsumexp, Tensor? grad_sums, float scale, bool causal, "
    "bool learned) -> (Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_vector)"
)
_ATTENTION = torch.ops.posenc.toeplitz_attention.default
_BACKWARD = torch.ops.posenc.toeplitz_attention_backward.default
_LIBRARY.impl("toeplitz_attention", autograd_kernel(_ATTENTION, _Differentiable, in_torch), "Autograd", with_keyset=True)
_LIBRARY.impl("toeplitz_attention", in_torch, "FuncTorchBatched")
_LIBRARY.impl("toeplitz_attention", toeplitz_attention, "CPU")
_LIBRARY.impl("toeplitz_attention_backward", toeplitz_attention_backward, "CPU")
_LIBRARY._register_fake("toeplitz_attention", _fake)
_LIBRARY._register_fake("toeplitz_attention_backward", _fake_backward)
