"""Activation checkpointing and hooks on saved tensors change nothing."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointError, CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding

Run = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]


@breaks("gradient")
def checkpointed_equals_plain(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The output and all gradients are the same with every kind of checkpointing, with and without autocast.

    Kinds: reentrant, non-reentrant, and selective, which keeps what attention computes. Under hooks on saved tensors, as
    offloading and sharding use them, every saved tensor is asked for once.
    """
    world = World(setting)
    kinds: dict[str, Run] = {
        "reentrant checkpointing": functools.partial(checkpoint, use_reentrant=True),
        "non-reentrant checkpointing": functools.partial(checkpoint, use_reentrant=False),
        "selective checkpointing": functools.partial(checkpoint, use_reentrant=False, context_fn=_selective),
        "hooks on saved tensors": _hooked,
    }
    for autocast in (False, True):
        # A reentrant forward records nothing, and kernels may differ by a rounding where no gradient is to come.
        dtype = torch.bfloat16 if autocast else setting.dtype
        expected = _trained(encoding, world, lambda function, x: function(x), autocast)
        for kind, run in kinds.items():
            what = f"{kind}{' under autocast' if autocast else ''}"
            try:
                results = _trained(encoding, world, run, autocast)
            except CheckpointError as error:
                message = str(error).splitlines()[0]
                raise LawBroken(f"{what}: {message}") from error
            for actual, reference in zip(results, expected, strict=True):
                yield close(actual, reference, dtype, what)


def _trained(encoding: PositionalEncoding, world: World, run: Run, autocast: bool) -> list[Tensor]:
    """The output, and the gradients of the tokens and of every parameter."""
    model, x = copy.deepcopy(encoding), world.x.clone().requires_grad_()
    at = world.plain()
    with torch.autocast(torch.device(world.setting.device).type, dtype=torch.bfloat16, enabled=autocast):
        out = run(lambda x: world.output(model, x, at), x)
        (out * world.draw("upstream", *out.shape)).sum().backward()
    inputs = [x, *model.parameters()]
    return [out.detach(), *(torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in inputs)]


def _selective() -> Any:
    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if "attention" in str(operator) else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def _hooked(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with _read_once():
        return function(x)


@contextlib.contextmanager
def _read_once() -> Iterator[None]:
    """Saved tensors are handed back once."""

    def unpack(packed: list[Tensor]) -> Tensor:
        if not packed:
            raise LawBroken("checkpointed_equals_plain: a backward asks twice for a tensor that it saved")
        return packed.pop()

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor.detach().clone()], unpack):
        yield
