"""Trying laws: every law on its inputs, a failure shrunk to the smallest input, and run again before it is reported.

A law is one sentence (`table.SENTENCES`) and one function for each kind of subject that it is tried on. The function takes
the subject and named whole numbers, its input. It returns or yields what it measured. It may raise `Declined` where it says
nothing about this subject, and `LawBroken` for what is wrong and no number.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from posenc.checking.bugs import BUGS
from posenc.checking.errors import Declined, LawBroken, NotApplicable
from posenc.checking.result import Result
from posenc.checking.subject import Subject, relative_to_first

MOST_TRIES = 60  # calls of a law while its input is made smaller
CONFIRMATIONS = 2
SUMS = 4.0  # sums over keys round more than one product: allowed besides the budget of one term


class Measured(NamedTuple):
    """The largest difference, how much is allowed, and what was compared."""

    figure: float
    allowed: float
    what: str

    @property
    def holds(self) -> bool:
        return self.figure <= self.allowed  # False for NaN

    def __str__(self) -> str:
        if math.isinf(self.figure):
            return self.what
        return f"{self.what}: differs by {self.figure:.3g}, allowed {self.allowed:.3g}"


Measure = Callable[..., Measured | Iterable[Measured] | None]


@dataclass(frozen=True)
class Law:
    """A law, as it is tried on one kind of subject.

    name      the function's name; a law has one name for all kinds
    bug       the class of bug that breaks it: a key of BUGS; "" where none is known
    inputs    the inputs to try, in this order; each has the same names
    least     the smallest value of each name
    must_run  an error raised by the implementation is a failure; otherwise it is a refusal, "not declared"; what ends
              Python, such as sys.exit(), always is a failure
    measure   the function
    """

    name: str
    bug: str
    inputs: tuple[Mapping[str, int], ...]
    least: Mapping[str, int]
    must_run: bool
    measure: Measure


LAWS: dict[str, dict[str, Law]] = {}  # kind -> name -> law; a kind is a seam, "encoding" or "model"


def law(
    *kinds: str, bug: str, inputs: Sequence[Mapping[str, int]] = ({},), must_run: bool = False, **least: int
) -> Callable[[Measure], Measure]:
    """Adds the function to LAWS. Keyword arguments give the least value of each number of its input; 1 by default."""

    def add(function: Measure) -> Measure:
        smallest = {name: least.get(name, 1) for one in inputs for name in one}
        made = Law(function.__name__, bug, tuple(inputs), smallest, must_run, function)
        for kind in kinds:
            LAWS.setdefault(kind, {})[made.name] = made
        assert bug in BUGS
        return function

    return add


def chosen(kind: str, names: Sequence[str] | None) -> list[Law]:
    """The laws of a kind, or those named. Raises ValueError for a name that the kind does not have."""
    known = LAWS[kind]
    if unknown := [name for name in names or () if name not in known]:
        raise ValueError(f"laws: {kind} has no law {unknown[0]!r}; it has {', '.join(known)}")
    return [known[name] for name in (known if names is None else names)]


class Fresh(Protocol):
    """What laws are tried on: it gives a copy that has seen no call, or itself."""

    def fresh(self) -> Any: ...


def tried(law: Law, subject: Fresh) -> Result:
    """The result of one law."""
    worst: Measured | None = None
    declined: Declined | None = None
    for given in law.inputs:
        try:
            found = _measured(law, subject, given)
        except Declined as why:
            declined = declined or why
            continue
        if not found.holds:
            return _failure(law, subject, given, found)
        if worst is None or found.figure > worst.figure:
            worst = found
    if worst is not None:
        return Result(law.name, "passed", worst.what, worst.figure, worst.allowed)
    assert declined is not None  # every law has an input
    return Result(law.name, declined.verdict, str(declined))


def _measured(law: Law, subject: Fresh, given: Mapping[str, int]) -> Measured:
    """The result of a fresh copy of the subject. Raises Declined also for errors that are refusals."""
    try:
        return decisive(law.measure(subject.fresh(), **given))
    except Declined:
        raise
    except LawBroken as broken:
        return Measured(math.inf, 0.0, str(broken))
    except NotImplementedError as error:  # NotExpressible is one
        raise Declined("not declared", str(error) or "the adapter cannot express such input") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        if law.must_run or not isinstance(error, Exception):  # sys.exit() ends its caller's program: that is no refusal
            return Measured(math.inf, 0.0, f"raises {said}")
        raise Declined("not declared", f"it refuses such input with {said}") from error


def decisive(found: Measured | Iterable[Measured] | None) -> Measured:
    """The first measurement that does not hold; otherwise the one nearest to what it is allowed."""
    if isinstance(found, Measured):
        return found
    held = []
    for one in found or ():
        if not one.holds:
            return one
        held.append(one)
    return worst(*held) if held else Measured(0.0, 0.0, "")


def _failure(law: Law, subject: Fresh, given: Mapping[str, int], found: Measured) -> Result:
    """The failure at the smallest input found. What fails once and not again keeps a state between calls, or draws."""
    small = _shrunk(law, subject, given)
    for one in (small, given):
        again = [_again(law, subject, one) for _ in range(CONFIRMATIONS)]
        if all(found is not None and not found.holds for found in again):
            smallest = again[0]
            assert smallest is not None
            said = str(smallest)
            first = _again(law, subject, given) if one != given else None
            if first is not None and first.figure > smallest.figure and not math.isinf(first.figure):
                inputs = ", ".join(f"{name} {value}" for name, value in given.items())
                said += f" (by {first.figure:.3g} at {inputs})"
            return Result(law.name, "failed", said, smallest.figure, smallest.allowed, dict(one), BUGS.get(law.bug))
    said = f"{found}, once and not again: it keeps a state between calls, or draws random numbers"
    return Result(law.name, "failed", said, found.figure, found.allowed, dict(given), BUGS.get(law.bug))


def _again(law: Law, subject: Fresh, given: Mapping[str, int]) -> Measured | None:
    try:
        return _measured(law, subject, given)
    except Declined:
        return None


def _shrunk(law: Law, subject: Fresh, given: Mapping[str, int]) -> dict[str, int]:
    """The input with each number as small as it goes while the law still fails, one number after another."""
    best, tries = dict(given), 0
    improved = True
    while improved and tries < MOST_TRIES:
        improved = False
        for name, least in law.least.items():
            for smaller in _smaller(best[name], least):
                if tries >= MOST_TRIES:
                    break
                tries += 1
                found = _again(law, subject, best | {name: smaller})
                if found is not None and not found.holds:
                    best[name], improved = smaller, True
                    break
    return best


def _smaller(value: int, least: int) -> Iterator[int]:
    """The least, then ever nearer to the value: large steps first."""
    gap = value - least
    while gap > 0:
        yield value - gap
        gap //= 2


# What laws measure with -----------------------------------------------------------------------------------------------


def apart(actual: Tensor, expected: Tensor, allowed: float, what: str) -> Measured:
    """The largest absolute difference; infinite for another shape, for a NaN and for an infinity on one side only."""
    if actual.shape != expected.shape:
        return Measured(math.inf, allowed, f"{what}: the shape is {list(actual.shape)}, not {list(expected.shape)}")
    mine, theirs = actual.detach().double(), expected.detach().double()
    same = mine == theirs  # infinities too
    if not bool((torch.isfinite(mine) | same).all()):
        return Measured(math.inf, allowed, f"{what}: not finite, or hidden differently")
    figure = float((mine - theirs).masked_fill(same, 0.0).abs().max()) if mine.numel() else 0.0
    return Measured(figure, allowed, what)


def worst(*found: Measured) -> Measured:
    """The one that breaks its allowance most."""
    return max(found, key=lambda one: math.inf if math.isnan(one.figure) else one.figure / (one.allowed or 5e-324))


def budget(subject: Subject, expected: Tensor, farthest: int) -> float:
    """How far two ways to compute the same may differ in float32.

    Angles: position·frequency rounds by half a unit of its last place, whichever way it is formed, and the fastest
    frequency is near 1: 4 such errors of `farthest`. Arithmetic: 32 roundings of the largest entry.
    """
    eps = float(torch.finfo(torch.float32).eps)
    size = max(float(expected.detach().double().nan_to_num(neginf=0.0, posinf=0.0).abs().max()), 1e-6)
    return size * eps * (32 + 4 * farthest) if subject.seam != "bias" else size * eps * 32 + 4 * eps * farthest


def compared(subject: Subject, actual: Tensor, expected: Tensor, farthest: int, what: str) -> Measured:
    """Two arrangements of the same tokens; biases count up to a constant for each query, which a softmax does not see."""
    if subject.seam == "bias":
        actual, expected = relative_to_first(actual), relative_to_first(expected)
    sums = SUMS if subject.seam == "attention" else 1.0
    return apart(actual, expected, sums * budget(subject, expected, farthest), what)


def within_reach(subject: Subject, farthest: int) -> None:
    """Raises Declined where the implementation serves no position so far away."""
    if farthest > subject.reach:
        raise NotApplicable(f"it serves positions up to {subject.reach}")


def need_torch(subject: Subject) -> None:
    if subject.is_numpy:
        raise NotApplicable("it computes with NumPy")


def need_module(subject: Subject) -> Any:
    """The module. Raises Declined where none is known."""
    if subject.module is None:
        raise NotApplicable("no torch module is known: the callable is none and carries none as `module`")
    return subject.module


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """torch's default dtype is another one inside."""
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        yield
    finally:
        torch.set_default_dtype(before)
