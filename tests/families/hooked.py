"""Models that make their position ids themselves: the argument of their rotary module is replaced on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from families.harness import IDS, Call, Proof, calls, same_rotation
from posenc.configs import PositionSpec


@contextlib.contextmanager
def ids_given(module: torch.nn.Module, ids: Tensor | None) -> Iterator[None]:
    """While open, `module` sees `ids` as its position_ids; None changes nothing."""

    def replace(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if ids is None:
            return None
        if "position_ids" in keywords:
            return arguments, keywords | {"position_ids": ids}
        return (arguments[0], ids, *arguments[2:]), keywords

    hook = module.register_forward_pre_hook(replace, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def turned_inside(
    result: Proof,
    spec: PositionSpec,
    model: torch.nn.Module,
    rotary: torch.nn.Module,
    *,
    most: float = 1.0,
    only: Callable[[Call], bool] = lambda call: True,
    softmax: bool = False,
    **inputs: Any,
) -> list[Call]:
    """One stack against a spec, at positions 0, at IDS, and at those that the model makes by itself: 0, 1, 2, …"""
    passes = []
    for ids in (torch.zeros_like(IDS), IDS, None):
        with ids_given(rotary, ids):
            passes.append([call for call in calls(model, **inputs) if only(call)])
    at_zero, moved, counted = passes
    assert len(moved) == len(spec.layers), f"{len(moved)} attention calls, posenc has {len(spec.layers)} layers"
    same_rotation(result, spec, at_zero, moved, IDS, most, softmax=softmax)
    same_rotation(result, spec, at_zero, counted, torch.arange(IDS.shape[1]).expand_as(IDS), most)
    return counted
