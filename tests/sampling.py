"""What takes long is tried in full by make acceptance, and a sample of it by make test.

Of the foundation, the encodings of the founding notes, make test tries every one, in some of the combinations of options.
Of every entry added since it tries a sample, which `draw` picks by the entry's name: the same at every run, another for
every entry.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest
import torch

from posenc import PositionalEncoding, Positions
from posenc.catalogue import lookup
from posenc.catalogue.lookup import BY_NAME, FOUNDATION
from posenc.structure import added_to_output, addend_of

One = TypeVar("One")
CAMERA_AXES = 14  # of a patch whose camera is known
NODES = 2**14  # more than the laws spread their tokens over
TREE_AXES = 12  # of a node of a tree: the branches that lead to it

ENCODINGS = [name for name in lookup.names() if BY_NAME[name].kind != "preset" and not BY_NAME[name].of_pairs]
"""Every name that stands for the encoding of one layer and reads coordinates alone."""
OF_PAIRS = [name for name in lookup.names() if BY_NAME[name].of_pairs]
"""Those whose positions carry a value of each pair of tokens."""
IN_A_ROW = [name for name in ENCODINGS if BY_NAME[name].axes == 1]
"""Those whose tokens are words in a row."""
WITHOUT_STATES = [name for name in ENCODINGS if BY_NAME[name].in_a_row]
"""Those of them that read no hidden states, so that `posenc.attend` is enough."""
LOOPS = ("path", "path_fox")
"""Those that pass blocks of keys one after the other, as many as there are, so that no exported graph holds them."""
OWN_KEYS = ("fope", "repo", "rope_mixed", "selective_rope", "carope", "com_rope", "liere", "wire", "ms_poe", "mhrope")
"""Those whose keys need as many heads as their queries."""
ADDED = [name for name in lookup.names() if name not in FOUNDATION]
"""Every name added to the foundation."""


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """The first of every so many belongs to make test. A case of several values is a tuple."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*one, marks=pytest.mark.acceptance if at % count else ()) for at, one in enumerate(values)]


def a_third(names: Iterable[str]) -> list[Any]:
    """Every third belongs to make test."""
    return one_in(3, names)


def first_only(cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The first belongs to make test."""
    return [pytest.param(*case, marks=pytest.mark.acceptance if at else ()) for at, case in enumerate(cases)]


def every_second(*axes: Iterable[Any], slow: Iterable[Any] = ()) -> list[Any]:
    """All combinations, those with an even sum of indices for make test.

    A value of one axis meets every value of another there, where a third axis has two values or more. Combinations with one
    of `slow` belong to make acceptance.
    """
    late = set(slow)
    combinations = [list(zip(*one, strict=True)) for one in itertools.product(*map(enumerate, axes))]
    return [
        pytest.param(*values, marks=pytest.mark.acceptance if sum(indices) % 2 or (late and late & set(values)) else ())
        for indices, values in combinations
    ]


def thinned(count: int, cases: Iterable[Any]) -> list[Any]:
    """Of the cases that belong to make test, the first of every so many remains there."""
    kept, later = itertools.count(), pytest.mark.acceptance
    return [case if case.marks or next(kept) % count == 0 else pytest.param(*case.values, marks=later) for case in cases]


def foundation_first(names: Iterable[str]) -> list[Any]:
    """Names added to the foundation belong to make acceptance; whatever is no entry's name belongs to make test."""
    return [pytest.param(name, marks=pytest.mark.acceptance if name in ADDED else ()) for name in names]


def draw(name: str, among: Sequence[One], what: str = "") -> One:
    """One of several for an entry: the same at every run, others for other entries and other questions."""
    return among[zlib.crc32(f"{name} {what}".encode()) % len(among)]


def tokens_of(name: str, batch: int, length: int, start: int = 0) -> Positions:
    """Positions that an entry reads: words in a row from `start` on, or as many tokens along the diagonal of its axes."""
    axes, words = BY_NAME[name].axes, Positions.arange(batch, length).shift(start)
    return words if axes == 1 else diagonal(words, axes)


def diagonal(at: Positions, axes: int, *, flat: bool = False) -> Positions:
    """Token p at (p, p, …), or (p, 0, …) where it is flat."""
    if axes == CAMERA_AXES:
        return along_a_path(at)
    if axes == TREE_AXES:
        return in_a_tree(at)
    rest = at.coords * 0 if flat else at.coords
    return at.replaced(coords=torch.stack([at.coords, *[rest] * (axes - 1)], dim=-1))


def along_a_path(at: Positions) -> Positions:
    """Word p is the patch in row p of an image whose camera has turned and moved back and forth since word 0."""
    p = at.coords.double()
    turn, zero = (1.7 * p).sin(), 0.0 * p
    rows = [turn.cos(), zero, turn.sin(), p.sin(), zero, zero + 1, zero, (1.3 * p).cos(), -turn.sin(), zero, turn.cos()]
    return at.replaced(coords=torch.stack([p, zero, *rows, (0.7 * p).sin()], dim=-1))


def in_a_tree(at: Positions) -> Positions:
    """Word p is the node whose branches are the digits of p with base 3, 0 being no branch."""
    rest, digits = at.coords.long(), []
    for _ in range(TREE_AXES):
        digits.append(rest % 3)
        rest = rest.div(3, rounding_mode="floor")
    return at.replaced(coords=torch.stack(digits, dim=-1))


class OnTheDiagonal(PositionalEncoding):
    """An encoding of several coordinates, read as one of words in a row: word p lies at (p, p, …), or at (p, 0, …).

    So the laws, whose tokens have one coordinate, can be tried on it. A unit of length holds `per_unit` words. All else is
    the encoding's own.
    """

    def __init__(self, inner: PositionalEncoding, *, flat: bool = False, per_unit: int = 1) -> None:
        super().__init__()
        self.inner, self.flat, self.per_unit = inner, flat, per_unit
        self.seams, self.traits, self.learned_tables = inner.seams, inner.traits, inner.learned_tables  # type: ignore[misc]

    @property
    def identity(self) -> str:
        return self.inner.identity

    def at_diagonal(self, at: Positions) -> Positions:
        spread = diagonal(at, self.inner.axes, flat=self.flat)
        return spread if self.per_unit == 1 else spread.replaced(coords=spread.coords.double() / self.per_unit)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        return self.inner.tables(self.at_diagonal(at), dtype)

    def embed(self, x, at):
        return self.inner.embed(x, self.at_diagonal(at))

    def rotate(self, x, at, side, out=None):
        return self.inner.rotate(x, self.at_diagonal(at), side, out)

    def bias(self, q, k, at_q, at_k):
        return self.inner.bias(q, k, self.at_diagonal(at_q), self.at_diagonal(at_k))

    def read_hidden(self, x, at, past=None):
        return at.replaced(states=self.inner.read_hidden(x, self.at_diagonal(at), past).states)

    def finish(self, scores):
        at_q, at_k = self.at_diagonal(scores.at_q), self.at_diagonal(scores.at_k)
        return self.inner.finish(dataclasses.replace(scores, at_q=at_q, at_k=at_k))

    def softmax_scale(self, d_head: int) -> float:
        return self.inner.softmax_scale(d_head)

    def heads(self, start: int, stop: int) -> PositionalEncoding:
        return type(self)(self.inner.heads(start, stop), flat=self.flat, per_unit=self.per_unit)

    def at_layer(self, n: int) -> PositionalEncoding:
        return type(self)(self.inner.at_layer(n), flat=self.flat, per_unit=self.per_unit)


class InAPath(OnTheDiagonal):
    """An encoding of pairs, for laws: words are nodes of a path, each joined to the next: pairs are |i - j| apart."""

    def at_diagonal(self, at: Positions) -> Positions:
        return at

    def bias(self, q, k, at_q, at_k):
        if not at_q.length or not at_k.length or not at_q.batch:
            return None
        first = at_k.coords.amin(dim=1, keepdim=True)
        apart = (at_q.coords[..., None] - torch.arange(NODES, device=at_q.coords.device) - first[..., None]).abs()
        at_q = self.inner.with_pairs(at_q.replaced(coords=at_q.coords * 0), apart)
        return self.inner.bias(q, k, at_q, at_k.replaced(coords=at_k.coords - first))


class AddedOnTheDiagonal(OnTheDiagonal):
    """The same of an encoding that adds to the output, and says so."""

    @added_to_output
    def finish(self, v, at_q, at_k, seen):
        return addend_of(self.inner)(v, self.at_diagonal(at_q), self.at_diagonal(at_k), seen)


def on_the_diagonal(inner: PositionalEncoding, **options: Any) -> OnTheDiagonal:
    return (OnTheDiagonal if addend_of(inner) is None else AddedOnTheDiagonal)(inner, **options)


def only(names: Iterable[str], *chosen: str) -> list[Any]:
    """The chosen ones belong to make test."""
    return [pytest.param(name, marks=() if name in chosen else pytest.mark.acceptance) for name in names]
