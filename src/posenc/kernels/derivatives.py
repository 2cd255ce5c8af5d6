"""Shared code for the derivatives of operators: the kernel at the dispatcher's Autograd key, and second derivatives.

Every operator has a formula in plain torch. Under torch.func and in forward mode the operator is that formula, which has
every derivative and every batching rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc.kernels.eager import transformed


def autograd_kernel(
    operator: Any, function: type[torch.autograd.Function], formula: Callable[..., Any]
) -> Callable[..., Any]:
    """For `Library.impl(name, …, "Autograd", with_keyset=True)`.

    function  records the gradient. Its forward is called with the dispatch keys below Autograd before the operator's
              arguments, and calls `below_autograd` with them
    formula   what the operator is under transforms
    """

    def kernel(keyset: Any, *arguments: Any) -> Any:
        if transformed():
            return formula(*arguments)
        below = keyset & torch._C._after_autograd_keyset
        if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in arguments):
            return function.apply(below, *arguments)
        return below_autograd(operator, below, *arguments)

    return kernel


def below_autograd(operator: Any, below: Any, *arguments: Any) -> Any:
    """The operator's result without a gradient being recorded."""
    with torch._C._AutoDispatchBelowAutograd():
        return operator.redispatch(below, *arguments)


def in_full_precision(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that computes with autocast off, also where the caller asks for gradients under autocast."""

    @functools.wraps(backward)
    def exact(ctx: Any, *gradients: Tensor | None) -> Any:
        if not torch._C._is_any_autocast_enabled():
            return backward(ctx, *gradients)
        device = next(gradient.device.type for gradient in gradients if gradient is not None)
        with torch.autocast(device, enabled=False):
            return backward(ctx, *gradients)

    return exact


def differentiable_gradients(
    formula: Callable[..., Any], arguments: Sequence[Any], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradients of all arguments, as functions that can be differentiated again: those of the plain formula.

    gradients   those of the formula's results; None for a result that nothing depends on
    """
    # Views of their own: k may be computed from q, and the gradient of q must not include the way through k.
    views = [x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x for x in arguments]
    results = formula(*views)
    results = results if isinstance(results, tuple) else (results,)
    pairs = [(result, gradient) for result, gradient in zip(results, gradients, strict=True) if gradient is not None]
    wanted = [x for x in views if isinstance(x, Tensor) and x.requires_grad]
    of_wanted = iter(
        torch.autograd.grad(
            [result for result, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True
        )
    )
    return [next(of_wanted) if isinstance(x, Tensor) and x.requires_grad else None for x in views]
