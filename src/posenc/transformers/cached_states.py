"""What an encoding reads of hidden states, as channels that a cache of transformers keeps beside the keys.

Legend: b batch, g key heads, t new tokens, s cached tokens, d channels of a head, c channels of what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from posenc.support.shapes import Float

States = Mapping[str, tuple[Tensor, ...]]


def packed(states: States, key: Float[Tensor, "b g t d"]) -> Float[Tensor, "b g t c"]:
    """What was read, [b, t, …] each, as channels of the keys: the bits of each number, spread over the key heads."""
    flat = [x.detach().reshape(*x.shape[:2], -1).contiguous().view(key.dtype) for of in states.values() for x in of]
    channels = torch.cat(flat, dim=-1)
    heads = key.shape[1]
    padded: Tensor = functional.pad(channels, (0, -channels.shape[-1] % heads))
    by_head: Tensor = padded.unflatten(-1, (heads, -1))
    return by_head.transpose(1, 2)


def unpacked(held: Float[Tensor, "b g s c"], like: States) -> dict[str, tuple[Tensor, ...]]:
    """What `packed` was given, in the shapes and dtypes of `like`, whose tokens may be others."""
    channels = held.transpose(1, 2).flatten(2)
    result: dict[str, tuple[Tensor, ...]] = {}
    start = 0
    for owner, of in like.items():
        parts = []
        for state in of:
            wide = state[0, 0].numel() * state.element_size() // held.element_size()
            part = channels[..., start : start + wide].contiguous().view(state.dtype)
            parts.append(part.reshape(*part.shape[:2], *state.shape[2:]))
            start += wide
        result[owner] = tuple(parts)
    return result
