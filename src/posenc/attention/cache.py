"""What decoding keeps of the tokens of every row, and what may be done with it.

    cache.crop(lengths)            the first tokens of every row stay: rejected drafts are rolled back
    cache.reorder(rows)            rows in another order, some of them twice: beams, forks of a prompt
    cache.evict(keep)              some tokens are dropped; the others keep their positions, or are numbered anew
    cache.ring(capacity, sinks=4)  from now on at most `capacity` tokens a row: the first four and the latest
    cache.stored_in(torch.int8)    keys and values in fewer bits, with a scale for each head and token
    cache.static(capacity)         memory of a fixed size, which decoding writes by index: one graph over all steps
    ring.static()                  the same for a ring: a new token is written over the oldest
    cache.paged(size, blocks)      the same in blocks of one store, and a table of the blocks of every row

A cache is a value, except for those that are static. Each of these returns a new one, in which keys, values, positions and
what was read of hidden states belong together row by row; the old one stays as it was, so that a copy is free. What is
refused has changed nothing.

Legend: b batch, g key heads, s stored tokens, m kept tokens, c columns, t new tokens, dh channels of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree

from posenc.attention.cached_tokens import (
    check_states,
    counted_anew,
    first_of_each_row,
    first_tokens,
    index_of_rows,
    moved,
    order_of_real,
    parts_with_states,
    places,
    rotating,
    rows_at,
    rows_of,
    spread,
    spread_at,
    spread_heads,
    taken_at,
    taken_columns,
)
from posenc.attention.fewer_bits import DTYPES, packed, unpacked, width
from posenc.attention.pages import slots, with_blocks
from posenc.encoding import PositionalEncoding
from posenc.encodings.xpos import XPos
from posenc.kernels.eager import transformed
from posenc.positions import Positions
from posenc.structure import why_not_fused
from posenc.support import checks
from posenc.support.checked import INT64, checked, checked_on_failure
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import check_accepted, integers

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
    dtype      in which attention reads keys and values that are stored in fewer bits; None: as they are stored
    """

    k: Float[Tensor, "b g s dh"]
    v: Float[Tensor, "b g s dh"]
    at: Positions
    encoding: PositionalEncoding | None = None
    room: Room | None = field(default=None, repr=False)
    dtype: torch.dtype | None = None

    @property
    def lengths(self) -> Int[Tensor, "b"]:
        """Tokens that every row holds, padding and rejected drafts not counted: for `Positions.decode` while none was
        dropped without `renumber`."""
        return (self.at.document >= 0).sum(dim=1).expand(self.k.shape[0])

    def read(self) -> tuple[Float[Tensor, "b g s dh"], Float[Tensor, "b g s dh"]]:
        """Keys and values as attention reads them."""
        return (self.k, self.v) if self.dtype is None else (unpacked(self.k, self.dtype), unpacked(self.v, self.dtype))

    @checked_on_failure
    def extend(self, k: Float[Tensor, "b g t dh"], v: Float[Tensor, "b g t dh"], at: Positions) -> Self:
        """Raises ValueError for keys or values of other rows, heads or channels than the cache has."""
        at, held = self._longer(k, v, at), self.k.shape[2]
        if self.dtype is not None:
            k, v = packed(k, self.k.dtype), packed(v, self.v.dtype)
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
            dtype, channels = (held.dtype, held.shape[3]) if self.dtype is None else (self.dtype, width(held))
            if new.dtype != dtype or new.device != held.device:
                raise TypeError(f"{name}: expected {dtype} on {held.device} as in the cache, got {shown(new)}")
            if new.shape[:2] != held.shape[:2] or new.shape[3] != channels or new.shape[2] != at.length:
                raise ValueError(
                    f"{name}: expected {[*held.shape[:3], channels]} as the cache has, with the {at.length} tokens of "
                    f"`at`, got {list(new.shape)}"
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
        index, at = self._left(keep)
        kept = replace(self, k=taken_columns(self.k, index), v=taken_columns(self.v, index), at=at, room=None)
        if not renumber:
            return kept
        at, by = counted_anew(at)
        k, v = (packed(x, self.k.dtype) for x in moved(*kept.read(), by, rotating(self.encoding)))
        return replace(kept, k=k, v=v, at=at)

    def _left(self, keep: Bool[Tensor, "#b s"]) -> tuple[Int[Tensor, "b m"], Positions]:
        """The columns that `evict` keeps, and their positions. Raises as it does."""
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
        return index, taken_at(at, index, torch.arange(most, device=count.device) < count[:, None])

    @checked_on_failure
    def stored_in(self, dtype: torch.dtype) -> Self:
        """The same tokens with keys and values in bfloat16, float16 or int8, as those to come are stored too.

        int8 is x ≈ scale · n with scale = max|x| / 127 of each head and token, kept in fp32 beside the channels: dh + 4
        bytes. A number x is off by at most 2⁻⁸ |x| in bfloat16, 2⁻¹¹ |x| in float16 (up to 65 504), max|x| / 254 in int8;
        docs/caches.md has measured errors of outputs. Attention reads them in the dtype that they had. Positions and states
        stay as they are.

        Raises ValueError for another dtype, for a cache that is stored in fewer bits already, and in float16 and int8, by
        name, for an encoding whose pairs of a key grow apart with its position (xPos); RuntimeError for int8 where
        gradients would have to follow.
        """
        if dtype not in DTYPES or self.dtype is not None:
            held = "as they were computed" if self.dtype is None else f"in {self.k.dtype} already"
            raise ValueError(f"dtype: expected one of {', '.join(map(str, DTYPES))} for keys {held}, got {shown(dtype)}")
        for part in [] if self.encoding is None else self.encoding.modules():
            if isinstance(part, XPos) and dtype is not torch.bfloat16:
                raise ValueError(
                    f"dtype: pairs of a key of {label(part)} grow apart with its position, beyond float16 and a scale for "
                    "all of them; store torch.bfloat16"
                )
        k, v = packed(self.k, dtype), packed(self.v, dtype)
        return replace(self, k=k, v=v, room=None, dtype=self.k.dtype)

    def static(self, capacity: int) -> StaticCache:
        """The same tokens in memory for `capacity` tokens a row, which decoding writes by index.

        Each token stands in the column of its order; padding goes. Raises ValueError for an order that has no column, and
        where two tokens of a row share one.
        """
        return StaticCache.of(self, capacity)

    def paged(self, size: int, blocks: int) -> PagedCache:
        """The same tokens in `blocks` blocks of `size` tokens, one store for all rows, which decoding writes by index.

        Padding goes. Raises ValueError for too few blocks, and by name for an encoding that is more than a score_mod.
        """
        return PagedCache.of_tokens(self, size, blocks)

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
        ring = RingCache(self.k, self.v, self.at, self.encoding, dtype=self.dtype, capacity=capacity, sinks=sinks)
        return ring if self.k.shape[2] <= capacity else ring.evict(ring.kept(0))


@dataclass(frozen=True, eq=False)
class RingCache(KeyValueCache):
    """At most `capacity` tokens a row: the first `sinks` ones and the latest. Each new token takes the place of the oldest
    of the others, row by row. Its memory is its capacity. A full ring is copied for each new token, since the earlier one
    stays as it was; `static` writes over the oldest instead.

    A token sees what the ring holds once it is in there. `Attention.decode` writes the tokens of one call one after the
    other, so that the size of a call changes nothing.
    """

    capacity: int = 1
    sinks: int = 0

    def kept(self, tokens: int) -> Bool[Tensor, "b s"]:
        """Which tokens stay where the next ones take the places of others."""
        at = self.at.expand(self.k.shape[0])
        place, count = places(at)
        latest = self.capacity - self.sinks - tokens
        return (at.document >= 0) & ((place < self.sinks) | (place >= count - latest))

    def extend(self, k: Tensor, v: Tensor, at: Positions) -> Self:
        """Raises ValueError for more tokens than the ring has places for, and as that of `KeyValueCache`."""
        if at.length > self.capacity - self.sinks:
            raise ValueError(
                f"at: expected at most {self.capacity - self.sinks} tokens, for which the ring has places, got {at.length}"
            )
        if self.k.shape[2] + at.length <= self.capacity:
            return super().extend(k, v, at)
        self._check(k, v, at)
        index, held = self._left(self.kept(at.length))
        k, v = (taken_columns(old, index, packed(x, old.dtype)) for old, x in ((self.k, k), (self.v, v)))
        return replace(self, k=k, v=v, at=Positions.cat([held, at.expand(len(k))]), room=None)

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        """Raises ValueError for a ring that is full: it has dropped what rejected tokens took the places of."""
        self.check_not_full()
        return super().crop(lengths)

    def check_not_full(self) -> None:
        if bool((self.lengths >= self.capacity).any()):
            raise ValueError(
                "lengths: a row of the ring is full, and the tokens that rejected ones replaced are gone; go back to the "
                "cache as it was before them, which is still what it was"
            )

    def static(self, capacity: int | None = None) -> StaticRing:
        """The same ring in memory of its capacity, in which decoding writes a new token over the oldest."""
        if capacity not in (None, self.capacity):
            raise ValueError(f"capacity: the ring has {self.capacity}, got {capacity}; leave it out")
        return StaticRing.of_ring(self)

    def paged(self, size: int, blocks: int) -> PagedCache:
        raise ValueError("cache: a ring has no blocks; make the cache that it was made of paged")


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
    (`evict`, `ring`) and store them in fewer bits before the cache is made static.
    """

    @classmethod
    @checked_on_failure
    def of(cls, cache: KeyValueCache, capacity: int) -> StaticCache:
        """The tokens of a cache, each in the column of its order. Raises ValueError where they do not fit or share one."""
        checks.whole(capacity=capacity)
        at = cache.at.expand(cache.k.shape[0])
        order = order_of_real(at)
        if bool((order >= capacity).any()):
            row = int((order >= capacity).any(dim=1).nonzero()[0])
            raise ValueError(f"capacity: row {row} holds a token of order {order[row].max()}, got {capacity} columns")
        k, v = (spread_heads(x, order, capacity) for x in (cache.k, cache.v))
        return cls(k, v, spread_at(at, order, capacity), cache.encoding, dtype=cache.dtype)

    def columns(self, at: Positions) -> tuple[Int[Tensor, "b t"], str]:
        """Where these tokens are written, and what is wrong with the order {} of one whose column there is not."""
        return at.order, f"the static cache has columns for order 0 … {self.k.shape[2] - 1}, and none for padding"

    @checked_on_failure
    def extend(self, k: Tensor, v: Tensor, at: Positions) -> Self:
        """Writes the tokens of `at` into their columns and returns this very cache.

        Raises ValueError for padding among them and for tokens that have no column, in eager code on the CPU;
        RuntimeError where gradients would have to follow, and as that of `KeyValueCache`.
        """
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise RuntimeError("cache: a static cache is written in place, without gradients; call under torch.no_grad()")
        self._check(k, v, at)
        at, held = at.expand(k.shape[0]), self.at
        if held.states.keys() != at.states.keys():
            raise ValueError("at: carries other states than the cache holds; decode with the encoding that wrote it")
        column, why = self.columns(at)
        fits = (at.order >= 0) & (column >= 0) & (column < self.k.shape[2]) & (at.document >= 0)
        check_accepted(at.order, fits, f"at: {why}, got order {{}}")
        into: Any = torch.arange(len(k), device=k.device)[:, None], column
        self.write(packed(k, self.k.dtype), packed(v, self.v.dtype), into)
        for room, new in ((held.coords, at.coords), (held.order, at.order), (held.document, at.document)):
            room[into] = new
        for owner, rooms in held.states.items():
            for room, new in zip(rooms, at.states[owner], strict=True):
                room[into] = new
        return self

    def write(self, k: Tensor, v: Tensor, into: tuple[Int[Tensor, "b 1"], Int[Tensor, "b t"]]) -> None:
        """`into`: the row and the column of each token."""
        for room, new in ((self.k, k), (self.v, v)):
            room.transpose(1, 2)[into] = new.transpose(1, 2)

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
        raise ValueError("cache: a static cache becomes no ring; make a ring of the cache that it was made of")

    def stored_in(self, dtype: torch.dtype) -> Self:
        raise ValueError("cache: a static cache stays as it is stored; store the cache that it was made of in fewer bits")


@dataclass(frozen=True, eq=False)
class StaticRing(StaticCache, RingCache):
    """A ring in memory of its capacity: `Attention.decode` writes a new token over the oldest, and returns it."""

    @classmethod
    def of_ring(cls, ring: RingCache) -> StaticRing:
        """Raises ValueError for rows of several documents, each of which has its own sinks and latest tokens."""
        at, capacity = ring.at.expand(ring.k.shape[0]), ring.capacity
        order = order_of_real(at)
        if ring.k.shape[2] > capacity:
            raise ValueError(
                f"cache: its documents hold {ring.k.shape[2]} tokens, got a ring of {capacity} for one document"
            )
        place = order.masked_fill(order < 0, INT64).argsort(dim=1).argsort(dim=1).masked_fill(order < 0, -1)
        k, v = (spread_heads(x, place, capacity) for x in (ring.k, ring.v))
        held = spread_at(at, place, capacity)
        return cls(k, v, held, ring.encoding, dtype=ring.dtype, capacity=capacity, sinks=ring.sinks)

    def columns(self, at: Positions) -> tuple[Int[Tensor, "b t"], str]:
        """The first that holds no token, or that of the oldest after the sinks; none for several tokens at once."""
        real, column = self.at.document >= 0, torch.arange(self.capacity, device=at.order.device)
        age = torch.where(real, self.at.order, column - self.capacity).masked_fill(real & (column < self.sinks), INT64)
        found = age.argmin(dim=1, keepdim=True) if at.length == 1 else torch.full_like(at.order, -1)
        return found, "a static ring takes one token of a row at a time, and no padding"

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        self.check_not_full()
        return super().crop(lengths)


@dataclass(frozen=True, eq=False)
class PagedCache(StaticCache):
    """Tokens of all rows in blocks of one store. `Attention.decode` writes to it and returns it, without gradients.

        paged = cache.paged(size=16, blocks=64)
        paged = paged.reserve(paged.lengths + 1)                blocks for the next token of every row
        output, paged = layer.decode(x, Positions.decode(paged.lengths), paged)

    The token of order n of row r stands in the slot table[r, n // size] · size + n % size of the store.

    k, v    views [b, g, blocks · size, dh] of the store, the same for all rows; `store` is [blocks, size, g, dh]
    at      of every row what each slot is for it: document -1 where the slot holds no token of the row. So a kernel reads
            the store with score_mod(encoding, at_q, paged.at) and mask_mod(at_q, paged.at), and `attend` as it is
    table   the blocks of every row in their order, -1 where there is none

    `crop` gives blocks back and shares the memory, as `reorder` does: go on with one of the two.
    """

    table: Int[Tensor, "b n"] = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.int64))
    size: int = 1

    @classmethod
    @checked_on_failure
    def of_tokens(cls, cache: KeyValueCache, size: int, blocks: int) -> PagedCache:
        checks.whole(size=size, blocks=blocks)
        if cache.encoding is None:
            raise ValueError("cache: does not know its encoding; make it with its encoding")
        if why := why_not_fused(cache.encoding):
            raise ValueError(f"encoding: no score_mod expresses {label(cache.encoding)}: {why}; use cache.static(capacity)")
        at = cache.at.expand(cache.k.shape[0])
        order = order_of_real(at)
        table = with_blocks(
            order.new_empty(len(order), 0), functional.pad(order, (1, 0), value=-1).amax(1) + 1, size, blocks
        )
        slot = slots(table, order, size)
        k, v = (
            spread(x.transpose(1, 2).flatten(0, 1)[None], slot.view(1, -1), blocks * size)
            .transpose(1, 2)
            .expand(len(slot), -1, -1, -1)
            for x in (cache.k, cache.v)
        )
        held = spread_at(at, slot, blocks * size)
        return cls(k, v, held, cache.encoding, dtype=cache.dtype, table=table, size=size)

    @property
    def store(self) -> tuple[Float[Tensor, "n size g dh"], Float[Tensor, "n size g dh"]]:
        """Keys and values block by block, as vLLM has them: views."""
        k, v = (x[0].transpose(0, 1).unflatten(0, (-1, self.size)) for x in (self.k, self.v))
        return k, v

    def reserve(self, lengths: Int[Tensor, "b"] | Sequence[int]) -> Self:
        """The same store, in which every row has blocks for so many tokens. Raises ValueError where too few are free."""
        wanted = integers("lengths", lengths, "[b], one for each row", self.table.device)
        if len(wanted) != len(self.table):
            raise ValueError(f"lengths: expected one for each of {len(self.table)} rows, got {len(wanted)}")
        return replace(self, table=with_blocks(self.table, wanted, self.size, self.k.shape[2] // self.size))

    def columns(self, at: Positions) -> tuple[Int[Tensor, "b t"], str]:
        return slots(self.table, at.order, self.size), "padding, or a row without a block: call reserve(lengths) before"

    def write(self, k: Tensor, v: Tensor, into: tuple[Int[Tensor, "b 1"], Int[Tensor, "b t"]]) -> None:
        for room, new in ((self.k, k), (self.v, v)):
            room[0].transpose(0, 1)[into[1]] = new.transpose(1, 2)

    def crop(self, lengths: int | Tensor | Sequence[int]) -> Self:
        cropped = super().crop(lengths)
        last = cropped.at.order.masked_fill(cropped.at.document < 0, -1).amax(dim=1, keepdim=True)
        first = torch.arange(self.table.shape[1], device=last.device) * self.size
        return replace(cropped, table=self.table.masked_fill(first > last, -1))

    def reorder(self, rows: Tensor | Sequence[int]) -> Self:
        """The blocks of rows that are left out are free. Raises ValueError for a row that comes twice: both would be
        written to the same blocks."""
        held = len(self.table)
        chosen = index_of_rows(rows, held)
        table = rows_of(self.table, chosen)
        if not isinstance(chosen, slice) and len(chosen.unique()) < len(chosen):
            raise ValueError("rows: a row comes twice, and both would be written to its blocks; reorder before it is paged")
        k, v = (x[:1].expand(len(table), -1, -1, -1) for x in (self.k, self.v))
        return replace(self, k=k, v=v, at=rows_at(self.at, held, chosen), table=table)


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

    def paged(self, size: int, blocks: int) -> PagedCache:
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
    for an eighth more, so that a token costs no copy, and for a ring up to its capacity. None where gradients are recorded,
    in graphs and in torch.func, whose tensors are not written to.
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
    size = end + max(SPARE, end // 8)
    if isinstance(cache, RingCache):
        size = min(size, cache.capacity)
    k, v = (x.new_empty(*x.shape[:2], size, x.shape[3]) for x in (cache.k, cache.v))
    k[:, :, :held], v[:, :, :held] = cache.k, cache.v
    return Room(k, v, [held, end], {held: taker})
