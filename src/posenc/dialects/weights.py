"""Positional weights of a checkpoint into posenc's modules: learned tables, bias tables, relative vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.dialects.spec import PositionSpec, Use, Weight

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding


def with_weights(spec: PositionSpec, layer: int, state: Mapping[str, Tensor]) -> PositionalEncoding:
    """The encoding of a layer, its parameters filled from a model's state dict.

    Names are found by their end, so that any prefix ("model.", "bert.") will do. Raises KeyError for a weight that is not
    there, or there twice; ValueError for one of another shape.
    """
    from posenc.encodings.nope import NoPE
    from posenc.stack import Stack

    made = [_filled(use, layer, state) for use in spec.layer(layer).uses]
    return Stack(*made) if len(made) > 1 else made[0] if made else NoPE()


@torch.no_grad()
def _filled(use: Use, layer: int, state: Mapping[str, Tensor]) -> PositionalEncoding:
    encoding = use.build()
    parameters = dict(encoding.named_parameters()) | dict(encoding.named_buffers())
    for weight in use.weights:
        found = find(state, weight.key.format(layer=layer))
        found = found if weight.part is None else found.select(*weight.part)
        target = parameters[weight.parameter]
        target = target if weight.into is None else target.select(*weight.into)
        if weight.order is not None and found.numel() == target.numel():
            found = found.reshape([target.shape[axis] for axis in weight.order])
            found = found.permute([weight.order.index(axis) for axis in range(target.ndim)])
        if weight.reshape and found.numel() == target.numel():
            found = found.reshape(target.shape[::-1] if weight.transpose else target.shape)
        value = found.T if weight.transpose else found
        if value.shape != target.shape:
            raise ValueError(
                f"{weight.key}: {list(value.shape)} in the checkpoint, the configuration says {list(target.shape)}"
            )
        value = value.flip(0) if weight.flip else value
        target.copy_(value.roll(weight.last, 0) if weight.last else value)
    return encoding


def find(state: Mapping[str, Tensor], ending: str) -> Tensor:
    """The one tensor whose name is `ending` or ends in ".ending"."""
    names = [name for name in state if name == ending or name.endswith("." + ending)]
    if len(names) != 1:
        raise KeyError(f"{ending}: expected one tensor of that name in the checkpoint, found {len(names)} {names[:3]}")
    return state[names[0]]


__all__ = ["Weight", "find", "with_weights"]
