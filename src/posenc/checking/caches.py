"""Anyone's key-value cache under the laws of caches: an adapter of three functions in, a result for each law out.

    results = check_cache(write, read, crop)

    write(cache, k, v, positions) -> cache      k, v [b, g, t, d], positions [b, t]; `cache` is None for the first tokens
    read(cache) -> (k, v[, positions[, state]]) what attention would read now, [b, g, s, d]; positions [b, s], -1 where a
                                                column holds no token. Without positions, columns stand in causal order.
                                                state [b, …]: what the next token goes on from, such as a running sum
    crop(cache, lengths) -> cache               the first lengths[row] tokens of every row stay

No attention is computed. Every token has a key and a value unlike all others, so that what is read says which token stands
where: a rejected draft that came back, a key that was turned again, a ring read in the order of its slots. A state is
compared with that of a cache that was given the row's tokens alone.

Legend: b batch, g key heads, t new tokens, s stored columns, d channels of a head.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.checking.bugs import BUGS
from posenc.checking.diagnosis import of_failures
from posenc.checking.engine import Measured, law, tried
from posenc.checking.engine import chosen as laws_of
from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.result import Identity, Report, Result
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.checks import shown

HEADS, WIDTH, MOST = 2, 8, 256  # MOST tokens a row, drafts included
SAME_STATE = 1e-3  # of its largest number: sums in float32, in other chunks, and in caches of 16 bits
SHOWN = {  # what is seen, and the bug that it shows whichever law sees it
    "dtype": "first dtype",
    "other row": "batch mates",
    "unwritten": "unwritten slot",
    "apart": "keys apart",
    "turned": "keys turned again",
    "order": "ring order",
    "state": "running sum",
}
ROLLED_BACK = {"lost": "cut too far"}
RING_ROLLED_BACK = dict.fromkeys(("lost", "rejected", "position", "order", "unwritten"), "ring rollback")


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
    conversation: int = 0  # others have other tokens
    cropped: bool = False  # since the last tokens: only the next token, which sees itself too, reads it then

    def fresh(self) -> Cached:
        return Cached(self.write, self.read, self.crop, self.window)

    def begin(self, rows: int) -> None:
        self.rows, self.cache, self.written, self.cropped = [[] for _ in range(rows)], None, 0, False

    def tokens(self, numbers: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """Key and value of each token of a row, [b, g, t, d]: drawn once, the same for the same row and number."""
        generator = torch.Generator().manual_seed(self.conversation)
        drawn = torch.randn(2, len(self.rows), MOST, HEADS, WIDTH, generator=generator)
        row = torch.arange(len(self.rows))[:, None]
        k, v = (x[row, numbers].transpose(1, 2).to(dtype) for x in drawn)
        return k, v

    def add(self, count: int, dtype: torch.dtype = torch.float32) -> None:
        """New tokens for every row, each at the position after the last that the row holds."""
        numbers = torch.arange(self.written, self.written + count).expand(len(self.rows), -1)
        positions = torch.tensor([[len(row) + n for n in range(count)] for row in self.rows])
        self.cache = self.write(self.cache, *self.tokens(numbers, dtype), positions)
        self.written, self.cropped = self.written + count, False
        for row, held in enumerate(self.rows):
            held += numbers[row].tolist()

    def cut(self, lengths: list[int]) -> None:
        if self.crop is None:
            raise NotApplicable("no function crop is given")
        self.cache, self.cropped = self.crop(self.cache, list(lengths)), True
        for held, length in zip(self.rows, lengths, strict=True):
            del held[length:]

    def given(self, cache: Any) -> tuple[Tensor, ...]:
        """What `read` returns. Raises LawBroken for anything but two to four tensors."""
        found = self.read(cache)
        if not (isinstance(found, tuple | list) and 2 <= len(found) <= 4 and all(isinstance(x, Tensor) for x in found)):
            raise LawBroken(
                f"read: expected (k, v), (k, v, positions) or (k, v, positions, state), tensors, got {shown(found)}",
                "no keys and values",
            )
        return tuple(found)

    def check(self, what: str, dtype: torch.dtype = torch.float32, shows: Mapping[str, str] | None = None) -> Measured:
        """Every row reads its tokens, each once, with its own key and value, where it stands. Raises LawBroken.

        shows   the bug that each kind of fault shows here; others show that of the law
        """
        k, v, *rest = self.given(self.cache)
        shows = SHOWN | ({} if self.window is None else {"lost": "ring order"}) | dict(shows or {})
        for name, x in (("keys", k), ("values", v)):
            if x.dtype != dtype:
                wrong = f"{what}: {name} of {dtype} are read as {x.dtype}: the dtype of an earlier call was kept"
                raise LawBroken(wrong, shows["dtype"])
        every = torch.arange(max(self.written, 1)).expand(len(self.rows), -1)
        written = tuple(x.transpose(1, 2).double() for x in self.tokens(every, dtype))
        for row, held in enumerate(self.rows):
            where = f"{what}: row {row}"
            positions = rest[0][row].tolist() if rest else [None] * k.shape[2]
            seen = []
            for column, at in enumerate(positions):
                if at is None or at >= 0:
                    fault, number = _token(written, row, k[row, :, column].double(), v[row, :, column].double())
                    if fault:
                        raise LawBroken(f"{where}, column {column} {number}", shows.get(fault, ""))
                    seen.append((number, at))
            fault, wrong = self._compared(seen, held, in_order=not rest)
            if not fault and len(rest) > 1 and held:
                fault, wrong = self._state(row, held, rest[1][row], dtype)
            if fault:
                raise LawBroken(f"{where} {wrong}", shows.get(fault, ""))
        return Measured(0.0, 0.0, what)

    def _compared(self, seen: list[tuple[Any, int | None]], held: list[int], in_order: bool) -> tuple[str, str]:
        """What is wrong with the tokens that a row reads, in a word and in a clause; ("", "") where nothing is."""
        numbers = [number for number, _ in seen]
        needed = held if self.window is None else held[max(len(held) - self.window + self.cropped, 0) :]
        if extra := [number for number in numbers if number not in held]:
            return "rejected", f"reads token {extra[0]}, which was rejected"
        if lost := [number for number in needed if number not in numbers]:
            return "lost", f"lost token {lost[0]} of {len(held)}"
        if len(set(numbers)) < len(numbers):
            return "twice", "reads a token twice"
        if in_order and numbers != sorted(numbers):
            return "order", f"reads tokens in the order {numbers[:8]} …, which is that of slots"
        for number, at in seen:
            if at is not None and at != held.index(number):
                return "position", f"has token {number} at position {at}, expected {held.index(number)}"
        return "", ""

    def _state(self, row: int, held: list[int], state: Tensor, dtype: torch.dtype) -> tuple[str, str]:
        """The same for its state, which is compared with that of a cache which was given its tokens alone."""
        k, v = (x[row : row + 1] for x in self.tokens(torch.tensor(held).expand(len(self.rows), -1), dtype))
        alone = self.given(self.write(None, k, v, torch.arange(len(held))[None]))[3][0].double()
        apart = float((state.double() - alone).abs().max()) if state.shape == alone.shape else float("inf")
        if apart <= SAME_STATE * max(float(alone.abs().max()), 1.0):
            return "", ""
        return "state", f"goes on from a state that differs by {apart:.3g} from that of its {len(held)} tokens alone"


def _token(written: tuple[Tensor, ...], row: int, k: Tensor, v: Tensor) -> tuple[str, Any]:
    """("", the number of the row's token whose value is there, with its key), or what is wrong in a word and a clause."""
    keys, values = (x[row] for x in written)
    found: list[int] = (values == v).all(dim=(1, 2)).nonzero().flatten().tolist()
    of_key: list[int] = (keys == k).all(dim=(1, 2)).nonzero().flatten().tolist()
    if not found:
        others = (written[1] == v).all(dim=(2, 3)).nonzero().tolist()
        if others:
            return "other row", f"holds token {others[0][1]} of row {others[0][0]}"
        return "unwritten", "holds a value that was never written in this row"
    if found == of_key:
        return "", found[0]
    if of_key:
        return "apart", f"holds the value of token {found[0]} beside the key of token {of_key[0]}"
    if torch.allclose(keys[found[0]].norm(dim=-1), k.norm(dim=-1), rtol=1e-4):
        return "turned", f"holds the key of token {found[0]}, which was turned again"
    return "another", f"holds another key than that of token {found[0]}"


@law("cache", bug="decode offset", must_run=True, inputs=({"rows": 1}, {"rows": 3}))
def decode_equals_prefill(subject: Cached, rows: int) -> Measured:
    """Tokens written in chunks of 5, 1, 1, 3 and 1 are read as they were written."""
    subject.begin(rows)
    for count in (5, 1, 1, 3, 1):
        subject.add(count)
        measured = subject.check(f"after a chunk of {count}")
    return measured


@law("cache", bug="shared memory", must_run=True, inputs=({"rows": 1}, {"rows": 2}))
def earlier_calls_do_not_matter(subject: Cached, rows: int) -> Measured:
    """A cache that is begun after another, and one that goes on beside another, read their own tokens."""
    first, second = subject, subject.fresh()
    second.conversation = 1
    shows = dict.fromkeys(SHOWN, "shared memory")
    for one, count, what in (
        (first, 12, "a first cache"),
        (second, 3, "a cache after another"),
        (first, 1, "a cache that goes on beside another"),
        (second, 2, "a second cache that goes on"),
    ):
        if not one.rows:
            one.begin(rows)
        one.add(count)
        measured = one.check(what, shows=shows)
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
        wrapped = subject.window is not None and length + 4 >= subject.window
        shows = RING_ROLLED_BACK if wrapped else ROLLED_BACK
        measured = subject.check(f"{kept} of 4 drafts kept{', again' if again else ''}", shows=shows)
        subject.add(1)
        measured = subject.check("a token in the place of a rejected one", shows=shows)
    if subject.window is None:
        subject.cut([0] * rows)
        subject.add(2)
        measured = subject.check("after a crop to nothing")
    return measured


@law("cache", bug="one offset", inputs=({"first": 1, "second": 3}, {"first": 3, "second": 0}), first=0, second=0)
def rows_have_their_own_positions(subject: Cached, first: int, second: int) -> Measured:
    """Rows that keep other numbers of drafts go on at positions of their own."""
    if first == second:
        raise NotApplicable("both rows keep as many")
    subject.begin(2)
    subject.add(5)
    subject.add(4)
    subject.cut([5 + first, 5 + second])
    shows = {"unwritten": "one offset"}
    subject.check(f"rows that keep {first} and {second} drafts", shows=shows)
    subject.add(2)
    return subject.check(f"two tokens after {first} and {second} drafts", shows=shows)


@law("cache", bug="cache key", must_run=True)
def other_dtypes_do_not_matter(subject: Cached) -> Measured:
    """A cache of bfloat16, then one of float32, which loses nothing."""
    for dtype in (torch.bfloat16, torch.float32):
        subject.begin(1)
        subject.add(3, dtype)
        subject.add(1, dtype)
        measured = subject.check("a cache after one of another dtype", dtype)
    return measured


@law(
    "cache",
    bug="ring order",
    must_run=True,
    inputs=tuple({"rows": n, "chunk": chunk, "singles": m} for n, chunk, m in ((1, 1, 0), (2, 3, 0), (1, 3, 2))),
    singles=0,
)
def ring_equals_window(subject: Cached, rows: int, chunk: int, singles: int) -> Measured:
    """A cache of a window, written far beyond it, reads the window and never holds more than that and one chunk."""
    if subject.window is None:
        raise NotApplicable("no window is given: the cache grows")
    subject.begin(rows)
    subject.add(subject.window // 2)
    for _ in range(3 * subject.window // (chunk + singles)):
        for count in (chunk, *[1] * singles):
            subject.add(count)
            measured = subject.check(f"after a chunk of {count}")
            columns = subject.given(subject.cache)[0].shape[2]
            if columns > subject.window + count:
                raise LawBroken(f"it reads {columns} columns for a window of {subject.window} and {count} new tokens")
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


def steps(adapter: Any, name: str) -> Iterator[str | Report]:
    """The name of each law before it is tried, and the report at the end, of an object or module with these functions.

    adapter   has write and read, and may have crop and window
    Raises ValueError for a window that is no whole number.
    """
    begin, window = time.perf_counter(), getattr(adapter, "window", None)
    if window is not None:
        checks.whole(window=window)
    subject, results = Cached(adapter.write, adapter.read, getattr(adapter, "crop", None), window), list[Result]()
    for one in laws_of("cache", None):
        yield one.name
        results.append(tried(one, subject))
    failed = [result for result in results if result.verdict == "failed"]
    bug = next((key for result in failed for key, known in BUGS.items() if known is result.bug), None)
    diagnosis = of_failures("cache", failed, bug) if failed else None
    seconds = time.perf_counter() - begin
    yield Report(name, "cache", tuple(results), Identity(sentence=""), seconds, diagnosis=diagnosis)
