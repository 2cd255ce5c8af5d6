"""Random sequences of operations on a cache, against an attention over what every row was left with.

The oracle keeps plain lists: of each row the tokens that it holds, where they stand, and their hidden states. A token's
output is `posenc.attend` over keys made anew of these lists, one row at a time; no cache takes part.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
import torch

from field_bugs.worlds import ROW_BY_ROW, attention, tokens
from posenc import Attention, KeyValueCache, Positions, attend
from posenc.attention.cache import PagedCache, StaticCache
from posenc.attention.cached_tokens import parts_with_states, places
from posenc.structure import why_not_fused
from sampling import WITHOUT_STATES, one_in

ALLOWED = 2e-11  # float64: sums in another order, and keys turned again and again
SEQUENCES, ALL = 300, 20_000
NAMES = [name for name in ROW_BY_ROW if name != "floater"]  # its solver takes a second for each new position
LONGEST = 24


@dataclass(frozen=True)
class Held:
    """One token that a row holds: its hidden state, and its position."""

    x: torch.Tensor
    position: int


Row = list[Held]


def expected(module: Attention, row: Row, next_x: torch.Tensor, position: int) -> torch.Tensor:
    """One token over the tokens of a row at their positions, [1, 1, d]."""
    held = [*row, Held(next_x, position)]
    x = torch.stack([one.x for one in held])[None]
    at = Positions.at(torch.tensor([[one.position for one in held]]))
    x = module.encoding.embed(x, at)
    at = module.encoding.read_hidden(x, at)
    q, k, v = (module._split(linear(x)) for linear in (module.query, module.key, module.value))
    out = attend(q[:, :, -1:], k, v, module.encoding, at.take([len(held) - 1]), at, impl="reference")
    return module._merge(out)


class Sequence:
    """A cache and the lists, changed alike."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.draw = name, random.Random(seed)
        self.module = attention(name).double()
        self.with_states = bool(parts_with_states(self.module.encoding))
        self.seed, self.done = seed, []
        lengths = [self.draw.randint(1, 5) for _ in range(self.draw.randint(1, 3))]
        left, width = self.draw.random() < 0.5, max(lengths)
        x, mask = self.new(len(lengths), width), torch.zeros(len(lengths), width, dtype=torch.long)
        for row, length in enumerate(lengths):
            mask[row, width - length if left else 0 : width if left else length] = 1
        _, self.cache = self.module.decode(x, Positions.from_mask(mask))
        self.rows: list[Row] = [
            [Held(one, n) for n, one in enumerate(x[row, mask[row].bool()])] for row in range(len(lengths))
        ]
        self.next = list(lengths)  # where the next token of every row stands
        self.ring: tuple[int, int] | None = None

    def new(self, batch: int, length: int) -> torch.Tensor:
        self.seed += 1
        return tokens(batch, length, dtype=torch.float64, seed=self.seed)

    def step(self) -> None:
        operations = [self.decode, self.decode, self.crop, self.reorder, self.evict, self.keep_in_ring, self.keep_in_place]
        self.draw.choice(operations)()

    def decode(self) -> None:
        count = self.draw.randint(1, 3)
        if max(self.next) + count > LONGEST:
            return
        x = self.new(len(self.rows), count)
        at = Positions.arange(len(self.rows), count, torch.tensor(self.next))
        if isinstance(self.cache, PagedCache):
            self.cache = self.cache.reserve([position + count for position in self.next])
        outputs, self.cache = self.module.decode(x, at, self.cache)
        for row, held in enumerate(self.rows):
            for n in range(count):
                self.make_room(held)
                position = self.next[row] + n
                self.near(outputs[row : row + 1, n : n + 1], expected(self.module, held, x[row, n], position))
                held.append(Held(x[row, n], position))
            self.next[row] += count
        self.done.append(f"decode {count}")

    def make_room(self, held: Row) -> None:
        if self.ring is not None and len(held) >= self.ring[0]:
            del held[self.ring[1]]

    def crop(self) -> None:
        if self.ring is not None and any(len(held) >= self.ring[0] for held in self.rows):
            return
        lengths = [self.draw.randint(1, len(held)) for held in self.rows]
        self.cache = self.cache.crop(lengths)
        for row, length in enumerate(lengths):
            if length < len(self.rows[row]):
                del self.rows[row][length:]
                self.next[row] = self.rows[row][-1].position + 1
        self.done.append(f"crop {lengths}")

    def reorder(self) -> None:
        if isinstance(self.cache, PagedCache):  # which refuses a row twice
            rows = self.draw.sample(range(len(self.rows)), self.draw.randint(1, len(self.rows)))
        else:
            rows = [self.draw.randrange(len(self.rows)) for _ in range(self.draw.randint(1, 3))]
        self.cache = self.cache.reorder(rows)
        self.rows, self.next = [list(self.rows[row]) for row in rows], [self.next[row] for row in rows]
        self.done.append(f"reorder {rows}")

    def evict(self) -> None:
        if self.with_states or isinstance(self.cache, StaticCache):
            return  # the lists would have to keep states: the laws try these
        renumber = self.draw.random() < 0.5
        keep = torch.zeros(self.cache.k.shape[0], self.cache.k.shape[2], dtype=torch.bool)
        kept: list[Row] = []
        for row, held in enumerate(self.rows):
            columns = (self.cache.at.document.expand(len(self.rows), -1)[row] >= 0).nonzero().flatten().tolist()
            order = self.cache.at.order.expand(len(self.rows), -1)[row]
            columns.sort(key=lambda column: int(order[column]))
            chosen = [n for n in range(len(held)) if n == len(held) - 1 or self.draw.random() < 0.7]
            keep[row, [columns[n] for n in chosen]] = True
            kept.append([held[n] for n in chosen])
        try:
            self.cache = self.cache.evict(keep, renumber=renumber)
        except (TypeError, ValueError):
            if not renumber:
                raise
            return
        self.rows = [[replace(one, position=n) for n, one in enumerate(held)] if renumber else held for held in kept]
        self.next = [len(held) if renumber else self.next[row] for row, held in enumerate(self.rows)]
        self.done.append(f"evict {[len(held) for held in kept]}{' renumber' if renumber else ''}")

    def keep_in_ring(self) -> None:
        if self.ring is not None or self.with_states or isinstance(self.cache, StaticCache) or self.draw.random() < 0.6:
            return
        sinks = self.draw.randint(0, 2)
        self.ring = (sinks + self.draw.randint(1, 6), sinks)
        self.cache = self.cache.ring(self.ring[0], sinks=sinks)
        for held in self.rows:
            while len(held) > self.ring[0]:
                del held[sinks]
        self.done.append(f"ring {self.ring}")

    def keep_in_place(self) -> None:
        """Memory that is written by index: columns, blocks of one store, or the ring's places."""
        if isinstance(self.cache, StaticCache) or self.draw.random() < 0.5:
            return
        if self.ring is not None:
            self.cache = self.cache.static()
        elif self.draw.random() < 0.5 or why_not_fused(self.module.encoding):
            self.cache = self.cache.static(LONGEST)
        else:
            size = self.draw.randint(1, 5)
            self.cache = self.cache.paged(size, len(self.rows) * -(-LONGEST // size))
        self.done.append(type(self.cache).__name__)

    def near(self, got: torch.Tensor, wanted: torch.Tensor) -> None:
        apart = float((got - wanted).detach().abs().max())
        assert apart <= ALLOWED, f"{self.name}: differ by {apart:.3g} after {'; '.join(self.done)}"


def run(number: int) -> None:
    sequence = Sequence(NAMES[number % len(NAMES)], number)
    for _ in range(6):
        sequence.step()
    sequence.decode()


def run_all(numbers: range) -> None:
    for number in numbers:
        run(number)


@torch.no_grad()
@pytest.mark.parametrize("part", one_in(2, range(4)))
def test_sequences_of_operations_give_what_the_kept_tokens_give(part):
    run_all(range(part, SEQUENCES, 4))


@pytest.mark.acceptance
@torch.no_grad()
@pytest.mark.parametrize("part", range(20))
def test_twenty_thousand_sequences(part):
    run_all(range(SEQUENCES + part, SEQUENCES + ALL, 20))


def test_encodings_without_and_with_states_are_tried():
    assert {"rope", "alibi", "t5", "xpos", "sinusoidal", "fox", "selective_rope", "path"} <= set(NAMES)
    assert set(NAMES) & set(WITHOUT_STATES)


@torch.no_grad()
def test_every_kind_of_memory_is_tried():
    kinds = set()
    for number in range(150):
        sequence = Sequence(NAMES[number % 7], number)
        for _ in range(6):
            sequence.step()
        kinds.add(type(sequence.cache).__name__)
    assert kinds == {"KeyValueCache", "RingCache", "StaticCache", "StaticRing", "PagedCache"}


FAULTS = [
    "crop keeps one more",
    "rows stay",
    "keys turned twice",
    "the newest is dropped",
    "the newest place",
    "a block twice",
]


@torch.no_grad()
@pytest.mark.parametrize("fault", FAULTS)
def test_the_sequences_find_what_is_planted(fault, monkeypatch):
    from posenc.attention import cache as module
    from posenc.attention.cache import RingCache, StaticRing

    crop, reorder, moved, with_blocks = KeyValueCache.crop, KeyValueCache.reorder, module.moved, module.with_blocks

    def one_more(self, lengths):
        longer = [min(n + 1, int(most)) for n, most in zip(lengths, self.lengths, strict=True)]
        return crop(self, longer)

    def stays(self, rows):
        return replace(reorder(self, rows), k=reorder(self, [0] * len(rows)).k)

    def twice(k, v, by, encoding):
        return moved(*moved(k, v, by, encoding), by, encoding)

    def newest(self, tokens):
        return places(self.at.expand(len(self.k)))[0] < self.capacity - tokens

    def newest_place(self, at):
        order = self.at.order.masked_fill(self.at.document < 0, -1)
        return order.argmax(dim=1, keepdim=True), ""

    def block_twice(table, lengths, size, blocks):
        return with_blocks(table, lengths, size, blocks).clamp(max=1)

    target, name, wrong = {
        "crop keeps one more": (KeyValueCache, "crop", one_more),
        "rows stay": (KeyValueCache, "reorder", stays),
        "keys turned twice": (module, "moved", twice),
        "the newest is dropped": (RingCache, "kept", newest),
        "the newest place": (StaticRing, "columns", newest_place),
        "a block twice": (module, "with_blocks", block_twice),
    }[fault]
    monkeypatch.setattr(target, name, wrong)
    with pytest.raises((AssertionError, ValueError)):
        run_all(range(SEQUENCES))
