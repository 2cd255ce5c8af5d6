"""Memory that begins with the keys and values of a cache and has room for tokens to come, so that most copy nothing.

Legend: b batch, g key heads, n tokens that the memory has room for, dh channels of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.kernels.eager import transformed

if TYPE_CHECKING:
    from posenc.support.shapes import Float

SPARE = 64  # tokens that a copy leaves room for, or an eighth of them where that is more


class Room(NamedTuple):
    """Caches that go on from the same tokens share them: the first one to grow writes here, another one copies.

    ends    the numbers of tokens that caches in this memory hold, growing; only the last one goes on without a copy
    taken   the numbers of tokens after which room is taken; each is taken by one longer cache only
    """

    k: Float[Tensor, "b g n dh"]
    v: Float[Tensor, "b g n dh"]
    ends: list[int]
    taken: dict[int, object]


def room_for(k: Tensor, v: Tensor, room: Room | None, tokens: int, most: int | None) -> Room | None:
    """Memory with the keys and values of a cache in front and room for more tokens after them, taken for the caller alone.

    room   the memory that the cache has, if any. It is copied where there is none, no more of it, or where another cache
           goes on from the same tokens already
    most   tokens that the memory never has room for more than; None: an eighth more than is needed

    None where gradients are recorded, in graphs and in torch.func, whose tensors are not written to.
    """
    plain = type(k) is Tensor and not torch.compiler.is_compiling() and not torch.is_grad_enabled()
    if not plain or transformed():
        return None
    held, taker = k.shape[2], object()
    end = held + tokens
    if room is not None and room.k.is_inference() is torch.is_inference_mode_enabled():
        fits = end <= room.k.shape[2] and room.ends[-1] == held and k.data_ptr() == room.k.data_ptr()
        if tokens and fits and room.taken.setdefault(held, taker) is taker:
            room.ends.append(end)
            return room
    spare = end + max(SPARE, end // 8)
    size = spare if most is None else min(spare, most)
    longer_k, longer_v = (x.new_empty(*x.shape[:2], size, x.shape[3]) for x in (k, v))
    longer_k[:, :, :held], longer_v[:, :, :held] = k, v
    return Room(longer_k, longer_v, [held, end], {held: taker})
