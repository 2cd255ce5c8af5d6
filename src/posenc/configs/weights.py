"""Fills posenc's modules with a checkpoint's positional weights: learned tables, bias tables, relative vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.configs.spec import PositionSpec, Use, Weight
from posenc.configs.stacked import stacked

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding


def with_weights(spec: PositionSpec, layer: int, state: Mapping[str, Tensor]) -> PositionalEncoding:
    """The encoding of a layer, its parameters filled from a model's state dict.

    Names are matched by their end, so any prefix ("model.", "bert.") works. Raises KeyError for a missing or ambiguous
    weight, ValueError for a wrong shape.
    """
    part = spec.part.removesuffix("_config")
    return stacked([filled(use, layer, state, part) for use in spec.layer(layer).uses])


@torch.no_grad()
def filled(use: Use, layer: int, state: Mapping[str, Tensor], part: str) -> PositionalEncoding:
    """One use of a layer, as `with_weights` fills it."""
    encoding = use.build()
    parameters = dict(encoding.named_parameters()) | dict(encoding.named_buffers())
    for weight in use.weights:
        tensor = find(state, weight.key.format(layer=layer), part)
        tensor = tensor if weight.part is None else tensor.select(*weight.part)
        target = parameters[weight.parameter]
        target = target if weight.into is None else target.select(*weight.into)
        if weight.order is not None and tensor.numel() == target.numel():
            tensor = tensor.reshape([target.shape[axis] for axis in weight.order])
            tensor = tensor.permute([weight.order.index(axis) for axis in range(target.ndim)])
        if weight.reshape and tensor.numel() == target.numel():
            tensor = tensor.reshape(target.shape[::-1] if weight.transpose else target.shape)
        value = tensor.T if weight.transpose else tensor
        if value.shape != target.shape:
            raise ValueError(
                f"{weight.key}: {list(value.shape)} in the checkpoint, the configuration says {list(target.shape)}"
            )
        value = value.flip(0) if weight.flip else value
        target.copy_(value.roll(weight.last, 0) if weight.last else value)
    return encoding


# Names that checkpoints keep though the code has others by now: transformers renames them while it loads.
STORED_AS = tuple(
    (re.compile(now), stored)
    for now, stored in (
        (
            r"attention\.relative_position_bias\.relative_position_bias_table$",
            "attention.self.relative_position_bias_table",
        ),
        (r"self_attn\.(rel_l2_clip|rel_logits_proj)\.", r"attn.\1."),
        (r"self_attn\.r_proj\.weight$", "attn.wr_du.weight"),
        (r"self_attn\.(indexer\.)?softmax_scaling\.(s)cale$", r"attention.\1ssmax_scaling.\2"),
        (r"self_attn\.(indexer\.)?softmax_scaling\.(b)ias$", r"attention.\1ssmax_scaling.\2"),
        (r"parametrizations\.weight\.original0$", "weight_g"),
        (r"parametrizations\.weight\.original1$", "weight_v"),
        (r"^embeddings\.position_embedding$", "patch_generator.pos_embed"),
    )
)


def find(state: Mapping[str, Tensor], ending: str, part: str = "") -> Tensor:
    """The one tensor whose name is `ending` or ends in ".ending", or in an older name of it.

    `part`: of several, the one whose name contains it ("text" of text_config).
    """
    names = _named(state, ending)
    if not names:
        stored = ending
        for now, kept in STORED_AS:
            stored = now.sub(kept, stored)
        names = _named(state, stored)
    if len(names) > 1 and part:
        names = [name for name in names if part in name] or names
    if len(names) != 1:
        raise KeyError(f"{ending}: expected one tensor of that name in the checkpoint, found {len(names)} {names[:3]}")
    return state[names[0]]


def _named(state: Mapping[str, Tensor], ending: str) -> list[str]:
    return [name for name in state if name == ending or name.endswith("." + ending)]


__all__ = ["Weight", "find", "with_weights"]
