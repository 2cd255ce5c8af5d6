"""A cache in memory of a fixed size, which decoding writes by index: one graph over all steps.

    _, cache = layer.decode(prompt, Positions.from_mask(mask))
    cache = cache.static(256)                           room for 256 tokens a row
    step = torch.compile(layer.decode, fullgraph=True)
    output, cache = step(x, Positions.decode(lengths), cache)

A token stands in the column of its `order`, so that rows of other lengths need no padding, and a rolled back row goes on in
its own column. Columns that hold no token have document -1.

Legend: b batch, g key heads, c columns, t new tokens, dh channels of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from posenc.attention.cache import KeyValueCache, first_of_each_row
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked_on_failure
from posenc.support.tensors import check_accepted


@dataclass(frozen=True, eq=False)
class StaticCache(KeyValueCache):
    """Room for as many tokens a row as it has columns. `Attention.decode` writes to it and returns it, without gradients.

    `crop` shares its memory with the cache that it is made of: go on with one of the two. `reorder` copies. Drop tokens
    (`evict`, `ring`) before the cache is made static.
    """

    @classmethod
    @checked_on_failure
    def of(cls, cache: KeyValueCache, capacity: int) -> StaticCache:
        """The tokens of a cache, each in the column of its order. Raises ValueError where they do not fit or share one."""
        checks.whole(capacity=capacity)
        at = cache.at.expand(cache.k.shape[0])
        real = at.document >= 0
        order = at.order.masked_fill(~real, -1)
        if bool((order >= capacity).any()):
            row = int((order >= capacity).any(dim=1).nonzero()[0])
            raise ValueError(f"capacity: row {row} holds a token of order {order[row].max()}, got {capacity} columns")
        placed = order.sort(dim=1).values
        if bool(((placed.diff(dim=1) == 0) & (placed[:, 1:] >= 0)).any()) or bool((real & (at.order < 0)).any()):
            raise ValueError("cache: two tokens of a row have the same order, or one below 0; number them apart")
        rows, columns = real.nonzero(as_tuple=True)
        into = rows, order[rows, columns]

        def spread(x: Tensor, empty: float = 0) -> Tensor:
            """[b, s, …] to [b, c, …]"""
            room = x.new_full((x.shape[0], capacity, *x.shape[2:]), empty)
            room[into] = x.detach()[rows, columns]
            return room

        k, v = (spread(x.transpose(1, 2)).transpose(1, 2) for x in (cache.k, cache.v))
        states = {owner: tuple(map(spread, of_owner)) for owner, of_owner in at.states.items()}
        column = torch.arange(capacity, device=order.device).repeat(len(order), 1)
        held = Positions(spread(at.coords), column, spread(at.document, -1), states=states)
        return cls(k, v, held, cache.encoding)

    @checked_on_failure
    def extend(self, k: Tensor, v: Tensor, at: Positions) -> Self:
        """Writes the tokens of `at` into their columns and returns this very cache.

        Raises ValueError for padding among them and for an order that has no column, in eager code on the CPU;
        RuntimeError where gradients would have to follow, and as that of `KeyValueCache`.
        """
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise RuntimeError("cache: a static cache is written in place, without gradients; call under torch.no_grad()")
        self.check(k, v, at)
        at, held = at.expand(k.shape[0]), self.at
        if held.states.keys() != at.states.keys():
            raise ValueError("at: carries other states than the cache holds; decode with the encoding that wrote it")
        fits = (at.order >= 0) & (at.order < self.k.shape[2]) & (at.document >= 0)
        columns = (
            f"at: the static cache has columns for order 0 … {self.k.shape[2] - 1}, and none for padding, got order {{}}"
        )
        check_accepted(at.order, fits, columns)
        into: Any = torch.arange(len(k), device=k.device)[:, None], at.order
        for room, new in ((self.k, k), (self.v, v)):
            room.transpose(1, 2)[into] = new.transpose(1, 2)
        for room, new in ((held.coords, at.coords), (held.document, at.document)):
            room[into] = new
        for owner, rooms in held.states.items():
            for room, new in zip(rooms, at.states[owner], strict=True):
                room[into] = new
        return self

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        return replace(self, at=first_of_each_row(self.at, lengths))

    def evict(self, keep: Tensor, *, renumber: bool = False) -> Self:
        raise ValueError("cache: a static cache drops no tokens; evict first, and make what is left static")

    def ring(self, capacity: int, *, sinks: int = 0) -> Any:
        raise ValueError("cache: a static cache is no ring; make a ring of the cache that it was made of")
