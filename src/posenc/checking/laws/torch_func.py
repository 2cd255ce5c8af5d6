"""Derivatives of every kind: forward mode, torch.func, second derivatives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from posenc.checking.engine import Measured
from posenc.checking.laws.compare import within
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.forward_mode import ONE_AT_A_TIME

STEP = 1e-5  # of central differences in float64: exact to about 1e-10
ALLOWED = 1e-7  # relative to the largest entry
TENSORS = Sequence[Tensor]


@breaks("gradient")
def transforms(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Derivatives with respect to tokens and parameters agree, whichever way they are taken (float64).

    torch.func.jvp is finite differences, torch.func.vmap a loop, torch.func.grad what backward gives. Second derivatives
    are finite differences of the gradient, by forward over reverse mode and by reverse mode twice; the latter torch lacks
    for its fused attention, and says so. An encoding whose tables cannot be differentiated so raises
    NotImplementedError that says to call prepare() outside of the transform; then its tables are constants here.
    """
    world = World(replace(setting, dtype=torch.float64, batch=1, length=5))
    exact = copy.deepcopy(encoding).double()
    try:
        yield from _try(_Model(exact, world, world.plain()), [name for name, _ in exact.named_parameters()], world)
    except NotImplementedError as error:
        if "prepare()" not in str(error):
            raise
        with torch.no_grad():
            prepared = exact.prepare(world.plain(), torch.float64)
        yield from _try(_Model(exact, world, prepared), [], world)


def _try(model: _Model, names: list[str], world: World) -> Iterator[Measured]:
    """The law, for the tokens and the parameters of those names."""
    parameters = dict(model.encoding.named_parameters())
    point = [world.x, *(parameters[name].detach() for name in names)]
    along = [world.draw(f"along {n}", *tensor.shape) for n, tensor in enumerate(point)]

    def output(x: Tensor, *values: Tensor) -> Tensor:
        swapped = {f"encoding.{name}": value for name, value in zip(names, values, strict=True)}
        out: Tensor = torch.func.functional_call(model, swapped, (x,))
        return out

    def loss(*values: Tensor) -> Tensor:
        return (output(*values) * upstream).sum()

    upstream = world.draw("upstream", *output(*point).shape)
    gradient = torch.func.grad(loss, argnums=tuple(range(len(point))))

    with ONE_AT_A_TIME:
        tangent = torch.func.jvp(output, tuple(point), tuple(along))[1]
    yield from _near("jvp and finite differences", [tangent], _differences(lambda *values: [output(*values)], point, along))
    recorded = [tensor.clone().requires_grad_() for tensor in point]
    yield from _near("torch.func.grad and backward", gradient(*point), _gradients(loss(*recorded), recorded))
    both = torch.stack([world.x, world.draw("more", *world.x.shape)])
    looped = torch.stack([output(tokens, *point[1:]) for tokens in both])
    yield from _near("vmap and a loop", [torch.func.vmap(lambda x: output(x, *point[1:]))(both)], [looped])

    expected = _differences(lambda *values: _gradients_at(loss, values), point, along)
    with ONE_AT_A_TIME:
        forward_over_reverse = torch.func.jvp(gradient, tuple(point), tuple(along))[1]
    yield from _near("jvp of grad and finite differences", forward_over_reverse, expected)
    try:
        first = _gradients(loss(*recorded), recorded, create_graph=True)
        again = _gradients(torch.stack([(g * a).sum() for g, a in zip(first, along, strict=True)]).sum(), recorded)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
    else:
        yield from _near("backward twice and finite differences", again, expected)


class _Model(nn.Module):
    """Tokens to the output of attention, as a function of the encoding's parameters."""

    def __init__(self, encoding: PositionalEncoding, world: World, at: Positions) -> None:
        super().__init__()
        self.encoding, self.world, self.at = encoding, world, at

    def forward(self, x: Tensor) -> Tensor:
        return self.world.output(self.encoding, x, self.at)


def _differences(function: Callable[..., TENSORS], point: TENSORS, along: TENSORS) -> list[Tensor]:
    """The central differences of every result."""
    ahead, behind = (function(*(value + step * a for value, a in zip(point, along, strict=True))) for step in (STEP, -STEP))
    return [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]


def _gradients_at(loss: Callable[..., Tensor], point: TENSORS) -> list[Tensor]:
    recorded = [tensor.detach().clone().requires_grad_() for tensor in point]
    return _gradients(loss(*recorded), recorded)


def _gradients(loss: Tensor, of: TENSORS, create_graph: bool = False) -> list[Tensor]:
    if not loss.requires_grad:
        return [torch.zeros_like(x) for x in of]
    gradients = torch.autograd.grad(loss, of, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, of, strict=True)]


def _near(what: str, actual: TENSORS, expected: TENSORS) -> Iterator[Measured]:
    for result, reference in zip(actual, expected, strict=True):
        yield within(result, reference, ALLOWED * max(float(reference.detach().abs().max()), 1.0), what)
