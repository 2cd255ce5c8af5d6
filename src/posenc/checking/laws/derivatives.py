"""Gradients, against finite differences and between backends."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close, difference, tolerance, within
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World, expressible
from posenc.encoding import PositionalEncoding


@breaks("gradient")
def gradients(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Analytic gradients are those of finite differences (float64), and every backend's those of the reference."""
    small = World(replace(setting, dtype=torch.float64, batch=1, length=4, impl="reference"))
    exact = copy.deepcopy(encoding).double().requires_grad_()
    x = small.x.requires_grad_()
    parameters = list(exact.parameters())
    at = small.plain()
    called = lambda x, *_: small.output(exact, x, at)  # noqa: E731
    # one direction of all: the tolerance grows with the numbers of inputs and outputs, so that it must begin small
    if not torch.autograd.gradcheck(called, (x, *parameters), atol=1e-8, raise_exception=False, fast_mode=True):
        raise LawBroken("analytic and numerical gradients differ")
    wide = World(replace(setting, dtype=torch.float64))
    expected = small_gradients(exact, wide, "reference")
    for impl in expressible(exact, setting.device):
        for actual, reference in zip(small_gradients(exact, wide, impl), expected, strict=True):
            yield close(actual, reference, torch.float64, f"backend {impl}")


@breaks("gradient")
def gradients_agree(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """At the setting's dtype every backend's gradients are within twice the error of the reference's against float64."""
    world = World(setting)
    wide = World(replace(setting, dtype=torch.float64))
    exact = small_gradients(copy.deepcopy(encoding).double(), wide, "reference")
    reference = small_gradients(encoding, world, "reference")
    for impl in (*expressible(encoding, setting.device), "auto"):
        for actual, of_reference, true in zip(small_gradients(encoding, world, impl), reference, exact, strict=True):
            allowed = 2 * difference(of_reference, true) + tolerance(setting.dtype, true)
            yield within(actual, true, allowed, f"backend {impl}")


def small_gradients(encoding: PositionalEncoding, world: World, impl: str) -> list[Tensor]:
    x = world.x.clone().requires_grad_()
    q, k, v, at = world.heads(encoding, x, world.plain())
    out = world.attend(encoding, q, k, v, at, impl=impl)
    wanted = {"x": x, **{name: parameter for name, parameter in encoding.named_parameters() if parameter.requires_grad}}
    return list(gradients_of(out, world.draw("upstream", *out.shape), wanted).values())


def gradients_of(out: Tensor, upstream: Tensor, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of each leaf, where `upstream` comes back for the output; zeros for those without one."""
    grads = torch.autograd.grad(out, list(inputs.values()), upstream, allow_unused=True, retain_graph=True)
    return {
        f"gradient of {name}": torch.zeros_like(of) if grad is None else grad
        for (name, of), grad in zip(inputs.items(), grads, strict=True)
    }
