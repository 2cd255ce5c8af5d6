"""Encodings added to embeddings by a module of their own: the family's sum with and without it, against posenc's embed.

The family's model runs twice, once with the output of its positional module put to zero. What then reaches the module after
the sum is the embedding alone; posenc adds its encoding to that, and the other run is what it must give.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof
from posenc.configs import PositionSpec
from posenc.configs.spec import Layer, Use
from posenc.configs.weights import with_weights


@contextlib.contextmanager
def silence(*modules: torch.nn.Module) -> Iterator[None]:
    """While open, these modules answer zero."""
    hooks = [module.register_forward_hook(lambda module, arguments, out: torch.zeros_like(out)) for module in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def named(model: torch.nn.Module, ending: str) -> torch.nn.Module:
    """The one module whose path is `ending` or ends in ".ending"."""
    found = [module for name, module in model.named_modules() if name == ending or name.endswith("." + ending)]
    assert len(found) == 1, f"{ending}: {len(found)} modules of that name"
    return found[0]


def added_by(
    proof: Proof,
    spec: PositionSpec,
    model: torch.nn.Module,
    module: str,
    after: str,
    at: posenc.Positions,
    inputs: dict[str, Any],
    most: float = 1.0,
    what: str = "embeddings with positions",
    others: tuple[str, ...] = (),
    use: Use | None = None,
    arrange: Callable[[Tensor], Tensor] = lambda x: x,
) -> Tensor:
    """`module`: path of what makes the positions; `after`: of what the sum enters; `at`: where posenc sits the tokens.

    others  further terms of the sum (token types), silent in both runs, so that two terms round once
    use     the one of the first layer's uses that this is, where there are several
    arrange what enters that module as [b, t, d], where it comes in another shape
    """
    if use is not None:
        spec = PositionSpec(spec.family, layers=(Layer((use,)),))
    encoding = with_weights(spec, 0, model.state_dict())
    with silence(*(named(model, other) for other in others)):
        with_positions = arrange(entering(model, after, inputs))
        with silence(named(model, module)):
            alone = arrange(entering(model, after, inputs))
    assert not torch.equal(alone, with_positions), f"{proof.model_type}: {module} makes no difference"
    with torch.no_grad():
        got = encoding.embed(alone, at)
    proof.close(what, got, with_positions, most)
    return got


class Holding(torch.nn.Module):
    """A module under a name of its own: for families whose whole model cannot run on tiny inputs."""

    def __init__(self, **modules: torch.nn.Module) -> None:
        super().__init__()
        self.first = next(iter(modules))
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, **inputs: Any) -> Any:
        return getattr(self, self.first)(**inputs)
