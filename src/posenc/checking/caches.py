"""Anyone's key-value cache under the laws of caches: an adapter of three functions in, a result for each law out.

    results = check_cache(write, read, crop)

    write(cache, k, v, positions) -> cache      k, v [b, g, t, d], positions [b, t]; `cache` is None for the first tokens
    read(cache) -> (k, v) or (k, v, positions)  what attention would read now, [b, g, s, d]; positions [b, s], -1 where a
                                                column holds no token. Without positions, columns stand in causal order
    crop(cache, lengths) -> cache               the first lengths[row] tokens of every row stay

No attention is computed. Every token has a key and a value unlike all others, so that what is read says which token stands
where: a rejected draft that came back, a key that was turned again, a ring read in the order of its slots.

Legend: b batch, g key heads, t new tokens, s stored columns, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.checking.engine import Measured, law, tried
from posenc.checking.engine import chosen as laws_of
from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.result import Result
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.checks import shown

HEADS, WIDTH, MOST = 2, 8, 256  # MOST tokens a row, drafts included


@dataclass
class Cached:
    """A cache under check, and which tokens each row should hold: numbers of tokens, in causal order."""

    write: Callable[..., Any]
    read: Callable[..., Any]
    crop: Callable[..., Any] | None = None
    window: int | None = None
    rows: list[list[int]] = field(default_factory=list)
    cache: Any = None
    written: int = 0

    def fresh(self) -> Cached:
        return Cached(self.write, self.read, self.crop, self.window)

    def begin(self, rows: int) -> None:
        self.rows, self.cache, self.written = [[] for _ in range(rows)], None, 0

    def tokens(self, numbers: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Key and value of each token of a row, [b, g, t, d]: drawn once, the same for the same row and number."""
        drawn = torch.randn(2, len(self.rows), MOST, HEADS, WIDTH, generator=torch.Generator().manual_seed(0))
        row = torch.arange(len(self.rows))[:, None]
        k, v = (x[row, numbers].transpose(1, 2).to(dtype) for x in drawn)
        return k, v

    def add(self, count: int, dtype: torch.dtype = torch.float32) -> None:
        """New tokens for every row, each at the position after the last that the row holds."""
        numbers = torch.arange(self.written, self.written + count).expand(len(self.rows), -1)
        positions = torch.tensor([[len(row) + n for n in range(count)] for row in self.rows])
        self.cache = self.write(self.cache, *self.tokens(numbers, dtype), positions)
        self.written += count
        for row, held in enumerate(self.rows):
            held += numbers[row].tolist()

    def cut(self, lengths: list[int]) -> None:
        if self.crop is None:
            raise NotApplicable("no function crop is given")
        self.cache = self.crop(self.cache, list(lengths))
        for held, length in zip(self.rows, lengths, strict=True):
            del held[length:]

    def given(self) -> tuple[Tensor, ...]:
        """What `read` returns. Raises LawBroken for anything but two tensors, or three with the positions."""
        found = self.read(self.cache)
        if not (isinstance(found, tuple | list) and len(found) in (2, 3) and all(isinstance(x, Tensor) for x in found)):
            raise LawBroken(f"read: expected (k, v) or (k, v, positions), tensors, got {shown(found)}")
        return tuple(found)

    def check(self, what: str, dtype: torch.dtype = torch.float32) -> Measured:
        """Every row reads its tokens, each once, with its own key and value, where it stands. Raises LawBroken."""
        k, v, *rest = self.given()
        for name, x in (("keys", k), ("values", v)):
            if x.dtype != dtype:
                raise LawBroken(f"{what}: {name} of {dtype} are read as {x.dtype}: the dtype of an earlier call was kept")
        every = torch.arange(max(self.written, 1)).expand(len(self.rows), -1)
        keys, values = self.tokens(every, dtype)
        for row, held in enumerate(self.rows):
            positions = rest[0][row].tolist() if rest else [None] * k.shape[2]
            written = keys[row].transpose(0, 1).double(), values[row].transpose(0, 1).double()
            seen = [
                (self._number(written, k[row, :, column], v[row, :, column], f"{what}: row {row}, column {column}"), at)
                for column, at in enumerate(positions)
                if at is None or at >= 0
            ]
            self._compare(seen, held, f"{what}: row {row}", in_order=not rest)
        return Measured(0.0, 0.0, what)

    def _number(self, written: tuple[Tensor, Tensor], k: Tensor, v: Tensor, where: str) -> int:
        """Which of the row's written tokens a column holds: the one whose value is there, with its key."""
        keys, values = written
        found: list[int] = (values == v.double()).all(dim=(1, 2)).nonzero().flatten().tolist()
        of_key = (keys == k.double()).all(dim=(1, 2)).nonzero().flatten().tolist()
        if not found:
            raise LawBroken(f"{where} holds a value that was never written in this row")
        if found != of_key:
            if of_key:
                raise LawBroken(f"{where} holds the value of token {found[0]} beside the key of token {of_key[0]}")
            same = torch.allclose(keys[found[0]].norm(dim=-1), k.double().norm(dim=-1), rtol=1e-4)
            raise LawBroken(f"{where}: the key of token {found[0]} {'was turned again' if same else 'is another'}")
        return found[0]

    def _compare(self, seen: list[tuple[int, int | None]], held: list[int], where: str, in_order: bool) -> None:
        numbers = [number for number, _ in seen]
        needed = held if self.window is None else held[-self.window :]
        if extra := [number for number in numbers if number not in held]:
            raise LawBroken(f"{where} reads token {extra[0]}, which was rejected")
        if lost := [number for number in needed if number not in numbers]:
            raise LawBroken(f"{where} lost token {lost[0]} of {len(held)}")
        if len(set(numbers)) < len(numbers):
            raise LawBroken(f"{where} reads a token twice")
        if in_order and numbers != sorted(numbers):
            raise LawBroken(f"{where} reads tokens in the order {numbers[:8]} …, which is that of slots")
        for number, at in seen:
            if at is not None and at != held.index(number):
                raise LawBroken(f"{where} has token {number} at position {at}, expected {held.index(number)}")


@law("cache", bug="decode offset", must_run=True, inputs=({"rows": 1}, {"rows": 3}))
def decode_equals_prefill(subject: Cached, rows: int) -> Measured:
    """Tokens written in chunks of 5, 1, 1, 3 and 1 are read as they were written."""
    subject.begin(rows)
    for count in (5, 1, 1, 3, 1):
        subject.add(count)
        measured = subject.check(f"after a chunk of {count}")
    return measured


@law(
    "cache",
    bug="rolled back",
    inputs=tuple({"rows": rows, "prompt": n, "kept": kept} for n in (6, 24) for rows in (1, 2) for kept in (0, 1, 3)),
    kept=0,
)
def rollback_equals_never_seen(subject: Cached, rows: int, prompt: int, kept: int) -> Measured:
    """Four drafts of which the first few are kept, twice; then other tokens at the positions of the rejected ones."""
    subject.begin(rows)
    subject.add(prompt)
    for again in range(2):
        length = len(subject.rows[0])
        subject.add(4)
        subject.cut([length + kept] * rows)
        measured = subject.check(f"{kept} of 4 drafts kept{', again' if again else ''}")
        subject.add(1)
        measured = subject.check("a token in the place of a rejected one")
    if subject.window is None:
        subject.cut([0] * rows)
        subject.add(2)
        measured = subject.check("after a crop to nothing")
    return measured


@law("cache", bug="batch mates", inputs=({"first": 1, "second": 3}, {"first": 3, "second": 0}), first=0, second=0)
def rows_have_their_own_positions(subject: Cached, first: int, second: int) -> Measured:
    """Rows that keep other numbers of drafts go on at positions of their own."""
    subject.begin(2)
    subject.add(5)
    subject.add(4)
    subject.cut([5 + first, 5 + second])
    subject.check(f"rows that keep {first} and {second} drafts")
    subject.add(2)
    return subject.check(f"two tokens after {first} and {second} drafts")


@law("cache", bug="cache key", must_run=True)
def other_dtypes_do_not_matter(subject: Cached) -> Measured:
    """A cache of bfloat16, then one of float32, which loses nothing."""
    for dtype in (torch.bfloat16, torch.float32):
        subject.begin(1)
        subject.add(3, dtype)
        subject.add(1, dtype)
        measured = subject.check("a cache after one of another dtype", dtype)
    return measured


@law("cache", bug="ring order", must_run=True, inputs=({"rows": 1, "chunk": 1}, {"rows": 2, "chunk": 3}))
def ring_equals_window(subject: Cached, rows: int, chunk: int) -> Measured:
    """A cache of a window, written far beyond it, reads the window and never holds more than that and one chunk."""
    if subject.window is None:
        raise NotApplicable("no window is given: the cache grows")
    subject.begin(rows)
    subject.add(subject.window // 2)
    for _ in range(3 * subject.window // chunk):
        subject.add(chunk)
        measured = subject.check(f"after chunks of {chunk}")
        columns = subject.read(subject.cache)[0].shape[2]
        if columns > subject.window + chunk:
            raise LawBroken(f"it reads {columns} columns for a window of {subject.window} and {chunk} new tokens")
    return measured


@checked
def check_cache(
    write: Callable[..., Any],
    read: Callable[..., Any],
    crop: Callable[..., Any] | None = None,
    *,
    window: int | None = None,
    laws: list[str] | None = None,
) -> list[Result]:
    """The result of every law of caches. The functions are those at the head of this file.

    window   tokens that the last query sees, itself included, where the cache drops older ones; None: it keeps all
    laws     the names of some laws; None: all

    A function that raises NotImplementedError refuses such input ("not declared"): crop of rows at lengths of their own.
    Raises ValueError for an unknown law.
    """
    if window is not None:
        checks.whole(window=window)
    subject = Cached(write, read, crop, window)
    return [tried(one, subject) for one in laws_of("cache", laws)]
