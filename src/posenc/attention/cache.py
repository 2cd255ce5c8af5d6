"""What decoding keeps of the tokens of every row, and what may be done with it.

    cache.crop(lengths)            the first tokens of every row stay: rejected drafts are rolled back
    cache.reorder(rows)            rows in another order, some of them twice: beams, forks of a prompt
    cache.evict(keep)              some tokens are dropped; the others keep their positions, or are numbered anew
    cache.ring(capacity, sinks=4)  from now on at most `capacity` tokens a row: the first four and the latest
    cache.static(capacity)         memory of a fixed size, which decoding writes by index: one graph over all steps

A cache is a value, except for the static one. Each of these returns a new one, in which keys, values, positions and what
was read of hidden states belong together row by row; the old one stays as it was, so that a copy is free. What is refused
has changed nothing.

Legend: b batch, g key heads, s stored tokens, m kept tokens, c columns, t new tokens, dh channels of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.utils import _pytree

from posenc.attention.cached_tokens import (
    check_states,
    counted_anew,
    first_of_each_row,
    first_tokens,
    index_of_rows,
    moved,
    parts_with_states,
    places,
    rotating,
    rows_at,
    rows_of,
    taken_at,
    taken_columns,
)
from posenc.encoding import PositionalEncoding
from posenc.kernels.eager import transformed
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked, checked_on_failure
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import check_accepted

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int

SPARE = 64  # tokens that a copy leaves room for, or an eighth of them where that is more


class Room(NamedTuple):
    """Memory that begins with the keys and values of a cache and has room for tokens to come.

    ends    the numbers of tokens that caches in this memory hold, growing; only the last one goes on without a copy
    taken   the numbers of tokens after which room is taken; each is taken by one longer cache only
    """

    k: Float[Tensor, "b g n dh"]
    v: Float[Tensor, "b g n dh"]
    ends: list[int]
    taken: dict[int, object]


@dataclass(frozen=True, eq=False)
class KeyValueCache:
    """Rotated keys, values, their positions and what was read of them. `extend` returns a longer cache; this one stays.

    encoding   what rotated the keys: another one is refused, and `evict` turns keys with it. None: not known
    room       the memory that `extend` may write to without copying, where no gradient is recorded; None: it copies
    """

    k: Float[Tensor, "b g s dh"]
    v: Float[Tensor, "b g s dh"]
    at: Positions
    encoding: PositionalEncoding | None = None
    room: Room | None = field(default=None, repr=False)

    @property
    def lengths(self) -> Int[Tensor, "b"]:
        """Tokens that every row holds, padding and rejected drafts not counted: for `Positions.decode` while none was
        dropped without `renumber`."""
        return (self.at.document >= 0).sum(dim=1).expand(self.k.shape[0])

    @checked_on_failure
    def extend(self, k: Float[Tensor, "b g t dh"], v: Float[Tensor, "b g t dh"], at: Positions) -> Self:
        """Raises ValueError for keys or values of other rows, heads or channels than the cache has."""
        at, held = self._longer(k, v, at), self.k.shape[2]
        room = _room_for(self, k.shape[2])
        if room is None:
            return replace(self, k=torch.cat([self.k, k], dim=2), v=torch.cat([self.v, v], dim=2), at=at, room=None)
        end = held + k.shape[2]
        room.k[:, :, held:end], room.v[:, :, held:end] = k, v
        return replace(self, k=room.k[:, :, :end], v=room.v[:, :, :end], at=at, room=room)

    def _longer(self, k: Tensor, v: Tensor, at: Positions) -> Positions:
        """The positions of the longer cache. Raises as `extend`."""
        self._check(k, v, at)
        rows = k.shape[0]
        before = self.at if self.at.batch == rows else self.at.expand(rows)
        return Positions.cat([before, at if at.batch == rows else at.expand(rows)])

    def _check(self, k: Tensor, v: Tensor, at: Positions) -> None:
        """Raises ValueError and TypeError for keys and values that do not go on after those of the cache."""
        for name, held, new in (("k", self.k, k), ("v", self.v, v)):
            if new.dtype != held.dtype or new.device != held.device:
                raise TypeError(f"{name}: expected {held.dtype} on {held.device} as in the cache, got {shown(new)}")
            if new.shape[:2] != held.shape[:2] or new.shape[3] != held.shape[3] or new.shape[2] != at.length:
                raise ValueError(
                    f"{name}: expected {list(held.shape)} as the cache has, with the {at.length} tokens of `at`, "
                    f"got {list(new.shape)}"
                )

    @checked_on_failure
    def crop(self, lengths: int | Int[Tensor, "b"] | Sequence[int]) -> Self:
        """The first `lengths` tokens of every row, in causal order: the others are as if they had never been seen.

            cache.crop(n)            the same number in every row
            cache.crop([5, 7])       one for each row: accepted drafts of speculative decoding

        Padding is not counted. The next token of a row goes on at position `lengths`, where its positions count up from 0.
        No key is copied: columns that no row needs are cut off, and what is left of rejected tokens becomes padding, which
        `evict` removes.

        Raises ValueError for a negative length, for more tokens than a row holds, and for another number of rows.
        """
        at = first_tokens(self.at.expand(self.k.shape[0]), lengths)
        return replace(self, k=self.k[:, :, : at.length], v=self.v[:, :, : at.length], at=at, room=None)

    @checked_on_failure
    def reorder(self, rows: Int[Tensor, "n"] | Sequence[int]) -> Self:
        """The rows in this order; a row may come several times, or not at all: beams, or one prompt for several answers.

        Rows that follow one another in the cache are not copied.

        Raises IndexError for a row that there is not.
        """
        held = self.k.shape[0]
        chosen = index_of_rows(rows, held)
        k, v, at = rows_of(self.k, chosen), rows_of(self.v, chosen), rows_at(self.at, held, chosen)
        return replace(self, k=k, v=v, at=at, room=None)

    @checked
    def evict(self, keep: Bool[Tensor, "#b s"], *, renumber: bool = False) -> Self:
        """The tokens where `keep` is True; the others are dropped and their memory is freed.

        keep       [b, s] or [1, s], a column for each stored one; padding is dropped, whatever it says. Rows of other
                   numbers of kept tokens end with padding
        renumber   False: kept tokens keep their positions, and the next token goes on where it would have. True: those of
                   each document are counted anew from 0, their rotated keys turned to where they are now, and the next
                   token goes on at `lengths`, as StreamingLLM counts (Xiao et al. 2023, section 3.2)

        Tokens after it see what is left as if it were alone, at the positions and with the states that it has: with methods
        that count or sum along the keys (CoPE, PaTH) along those that are left. Keys and values of later layers still hold
        what their tokens had read of dropped ones. Keys that are turned are rounded once more.
        Off the CPU it waits for the device, since the size of the result is in `keep`.

        Raises ValueError for a mask of another shape; where the state of the next token is made of a token that is dropped,
        as running sums are of the last one; and with `renumber` for an encoding whose keys hold positions otherwise than by
        a rotation that adds up, and for positions of several coordinates or of real numbers.
        """
        rows, stored = self.k.shape[0], self.k.shape[2]
        if keep.shape not in ((rows, stored), (1, stored)) or keep.is_meta:
            raise ValueError(
                f"keep: expected bool [{rows}, {stored}] or [1, {stored}], a column for each stored token, "
                f"got {shown(keep)}"
            )
        at = self.at.expand(rows)
        real = at.document >= 0
        keep = keep.to(self.k.device).expand(rows, stored) & real
        check_states(self.encoding, at, real & ~keep)
        count = keep.sum(dim=1)
        most = int(count.max()) if rows else 0
        index = (~keep).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]  # kept tokens first, as they stand
        at = taken_at(at, index, torch.arange(most, device=count.device) < count[:, None])
        k, v = taken_columns(self.k, index), taken_columns(self.v, index)
        if renumber:
            at, by = counted_anew(at)
            k, v = moved(k, v, by, rotating(self.encoding))
        return replace(self, k=k, v=v, at=at, room=None)

    def static(self, capacity: int) -> StaticCache:
        """The same tokens in memory for `capacity` tokens a row, which decoding writes by index.

        Each token stands in the column of its order; padding goes. Raises ValueError for an order that has no column, and
        where two tokens of a row share one.
        """
        return StaticCache.of(self, capacity)

    @checked_on_failure
    def ring(self, capacity: int, *, sinks: int = 0) -> RingCache:
        """The same tokens as a cache of a fixed size: each row holds its first `sinks` tokens and the latest others.

        Positions stay as they were. Raises ValueError unless 0 <= sinks < capacity, and as `evict` does.
        """
        checks.whole(capacity=capacity)
        checks.whole(0, sinks=sinks)
        if sinks >= capacity:
            raise ValueError(
                f"sinks: expected fewer than capacity={capacity}, which holds the latest tokens too, got {sinks}"
            )
        for part in parts_with_states(self.encoding):
            if part.earlier is None or part.earlier > capacity - sinks:
                needed = "all tokens" if part.earlier is None else f"the {part.earlier} latest tokens"
                raise ValueError(f"capacity: {label(part)} goes on from {needed} of a row, got room for {capacity - sinks}")
        return RingCache(self.k, self.v, self.at, self.encoding, capacity=capacity, sinks=sinks).with_room(0)


@dataclass(frozen=True, eq=False)
class RingCache(KeyValueCache):
    """At most `capacity` tokens a row: the first `sinks` ones and the latest. Each new token takes the place of the oldest
    of the others, row by row. Its memory is its capacity and, without gradients, an eighth more: columns of dropped tokens
    are padding until that is full, so that most tokens copy nothing.

    A token sees what the ring holds once it is in there. `Attention.decode` writes the tokens of one call one after the
    other, so that the size of a call changes nothing.
    """

    capacity: int = 1
    sinks: int = 0

    def with_room(self, tokens: int) -> Self:
        """The ring without the tokens whose places the next `tokens` ones take."""
        columns = self.k.shape[2] + tokens
        if columns <= self.capacity:
            return self
        at = self.at.expand(self.k.shape[0])
        place, count = places(at)
        latest = self.capacity - self.sinks - tokens
        keep = (at.document >= 0) & ((place < self.sinks) | (place >= count - latest))
        if self.room is None or columns > self.capacity + _spare(self.capacity):
            return self.evict(keep)
        document = at.document.masked_fill(~keep, -1)
        return replace(self, at=Positions(at.coords, at.order, document, None, at.tables, at.states))

    def extend(self, k: Tensor, v: Tensor, at: Positions) -> Self:
        """Raises ValueError for more tokens than the ring has places for, and as that of `KeyValueCache`."""
        if at.length > self.capacity - self.sinks:
            raise ValueError(
                f"at: expected at most {self.capacity - self.sinks} tokens, for which the ring has places, got {at.length}"
            )
        self._check(k, v, at)
        return super(RingCache, self.with_room(at.length)).extend(k, v, at)

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        """Raises ValueError for a ring that is full: it has dropped what rejected tokens took the places of."""
        if bool((self.lengths >= self.capacity).any()):
            raise ValueError(
                "lengths: a row of the ring is full, and the tokens that rejected ones replaced are gone; go back to the "
                "cache as it was before them, which is still what it was"
            )
        return super().crop(lengths)


@dataclass(frozen=True, eq=False)
class StaticCache(KeyValueCache):
    """Room for as many tokens a row as it has columns. `Attention.decode` writes to it and returns it, without gradients.

        _, cache = layer.decode(prompt, Positions.from_mask(mask))
        cache = cache.static(256)
        step = torch.compile(layer.decode, fullgraph=True)      one graph over all steps
        output, cache = step(x, Positions.decode(lengths), cache)

    A token stands in the column of its `order`, so that rows of other lengths need no padding, and a rolled back row goes
    on in its own column. Columns that hold no token have document -1.
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
        self._check(k, v, at)
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

    def reorder(self, rows: Tensor | Sequence[int]) -> Self:
        """A copy, each row with memory of its own: rows of one prompt are written to apart."""
        held = super().reorder(rows)

        def copied(x: Tensor) -> Tensor:
            return x.clone(memory_format=torch.contiguous_format)

        return replace(held, k=copied(held.k), v=copied(held.v), at=_pytree.tree_map(copied, held.at))

    def evict(self, keep: Tensor, *, renumber: bool = False) -> Self:
        raise ValueError("cache: a static cache drops no tokens; evict first, and make what is left static")

    def ring(self, capacity: int, *, sinks: int = 0) -> Any:
        raise ValueError("cache: a static cache is no ring; make a ring of the cache that it was made of")


@dataclass(frozen=True, eq=False)
class MemoryCache(KeyValueCache):
    """Rotated keys and values of a memory, projected once. It does not grow with the tokens that read it.

    seen   positions of the tokens that have read it, where the encoding reads hidden states; None: there are none yet
    """

    seen: Positions | None = None

    def extend(self, k: Tensor, v: Tensor, at: Positions) -> Self:
        raise ValueError("cache: holds a memory, which does not grow; decode a longer memory as a new one, without a cache")

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        """The memory stays whole; of the tokens that have read it the first `lengths` are left."""
        return self if self.seen is None else replace(self, seen=first_tokens(self.seen, lengths))

    def reorder(self, rows: Tensor | Sequence[int]) -> Self:
        reordered, before = super().reorder(rows), self.k.shape[0]
        if self.seen is None:
            return reordered
        return replace(reordered, seen=rows_at(self.seen, before, index_of_rows(rows, before)))

    def ring(self, capacity: int, *, sinks: int = 0) -> RingCache:
        raise ValueError("cache: holds a memory, which does not grow and needs no ring")

    def static(self, capacity: int) -> StaticCache:
        raise ValueError("cache: holds a memory, whose size is fixed already; it is the same at every step")


def check_written_by(cache: KeyValueCache, encoding: PositionalEncoding) -> None:
    """Raises ValueError for a cache whose keys another encoding rotated; a copy of the same configuration is the same."""
    if cache.encoding is None:
        return
    written, asked = (
        [(type(part), part.configuration) for part in whole.modules() if isinstance(part, PositionalEncoding)]
        for whole in (cache.encoding, encoding)
    )
    if written != asked:
        raise ValueError(
            f"cache: was written with {label(cache.encoding)}, and this block has {label(encoding)}; decode its "
            "tokens again"
        )


def _room_for(cache: KeyValueCache, tokens: int) -> Room | None:
    """Memory with the cache's keys and values in front and room for `tokens` more after them, taken for the caller alone.

    It is copied where there is none, no more of it, or where another cache goes on from the same tokens already: with room
    for an eighth more, so that a token costs no copy. None where gradients are recorded, in graphs and in torch.func, whose
    tensors are not written to.
    """
    plain = type(cache.k) is Tensor and not torch.compiler.is_compiling() and not torch.is_grad_enabled()
    if not plain or transformed():
        return None
    held, room, taker = cache.k.shape[2], cache.room, object()
    end = held + tokens
    if room is not None and room.k.is_inference() is torch.is_inference_mode_enabled():
        fits = end <= room.k.shape[2] and room.ends[-1] == held and cache.k.data_ptr() == room.k.data_ptr()
        if tokens and fits and room.taken.setdefault(held, taker) is taker:
            room.ends.append(end)
            return room
    size = end + _spare(end)
    k, v = (x.new_empty(*x.shape[:2], size, x.shape[3]) for x in (cache.k, cache.v))
    k[:, :, :held], v[:, :, :held] = cache.k, cache.v
    return Room(k, v, [held, end], {held: taker})


def _spare(tokens: int) -> int:
    return max(SPARE, tokens // 8)
