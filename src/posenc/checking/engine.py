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
    """The largest difference, how much is allowed, and what was compared; the bug that it shows, if not the law's."""

    figure: float
    allowed: float
    what: str
    bug: str = ""

    @property
    def holds(self) -> bool:
        return self.figure <= self.allowed  # False for NaN

    def __str__(self) -> str:
        if math.isinf(self.figure):
            return self.what
        if math.isnan(self.figure):
            return f"{self.what}: NaN"
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
        smallest = {name: least.get(name, 1) for numbers in inputs for name in numbers}
        law = Law(function.__name__, bug, tuple(inputs), smallest, must_run, function)
        for kind in kinds:
            LAWS.setdefault(kind, {})[law.name] = law
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
    for inputs in law.inputs:
        try:
            measured = _measured(law, subject, inputs)
        except Declined as why:
            declined = declined or why
            continue
        if not measured.holds:
            return _failure(law, subject, inputs, measured)
        if worst is None or measured.figure > worst.figure:
            worst = measured
    if worst is not None:
        return Result(law.name, "passed", worst.what, worst.figure, worst.allowed)
    assert declined is not None  # every law has an input
    return Result(law.name, declined.verdict, str(declined))


def _measured(law: Law, subject: Fresh, inputs: Mapping[str, int]) -> Measured:
    """The result of a fresh copy of the subject. Raises Declined also for errors that are refusals."""
    try:
        return decisive(law.measure(subject.fresh(), **inputs))
    except Declined:
        raise
    except LawBroken as broken:
        return Measured(math.inf, 0.0, str(broken), broken.bug)
    except NotImplementedError as error:  # NotExpressible is one
        raise Declined("not declared", str(error) or "the adapter cannot express such input") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        if law.must_run or not isinstance(error, Exception):  # sys.exit() ends its caller's program: that is no refusal
            return Measured(math.inf, 0.0, f"raises {message}")
        raise Declined("not declared", f"it refuses such input with {message}") from error


def decisive(measured: Measured | Iterable[Measured] | None) -> Measured:
    """The first measurement that does not hold; otherwise the one nearest to what it is allowed."""
    if isinstance(measured, Measured):
        return measured
    held = []
    for measurement in measured or ():
        if not measurement.holds:
            return measurement
        held.append(measurement)
    return worst(*held) if held else Measured(0.0, 0.0, "")


def _failure(law: Law, subject: Fresh, failing: Mapping[str, int], measured: Measured) -> Result:
    """The failure at the smallest input found. What fails once and not again keeps a state between calls, or draws."""
    small = _shrunk(law, subject, failing)
    for case in (small, failing):
        again = [_again(law, subject, case) for _ in range(CONFIRMATIONS)]
        if all(repeat is not None and not repeat.holds for repeat in again):
            smallest = again[0]
            assert smallest is not None
            message = str(smallest)
            first = _again(law, subject, failing) if case != failing else None
            if first is not None and first.figure > smallest.figure and not math.isinf(first.figure):
                inputs = ", ".join(f"{name} {value}" for name, value in failing.items())
                message += f" (by {first.figure:.3g} at {inputs})"
            bug = BUGS.get("not finite" if math.isnan(smallest.figure) else smallest.bug or law.bug)
            return Result(law.name, "failed", message, smallest.figure, smallest.allowed, dict(case), bug)
    message = f"{measured}, once and not again: it keeps a state between calls, or draws random numbers"
    return Result(law.name, "failed", message, measured.figure, measured.allowed, dict(failing), BUGS.get(law.bug))


def _again(law: Law, subject: Fresh, inputs: Mapping[str, int]) -> Measured | None:
    try:
        return _measured(law, subject, inputs)
    except Declined:
        return None


def _shrunk(law: Law, subject: Fresh, inputs: Mapping[str, int]) -> dict[str, int]:
    """The input with each number as small as it goes while the law still fails, one number after another."""
    best, tries = dict(inputs), 0
    improved = True
    while improved and tries < MOST_TRIES:
        improved = False
        for name, least in law.least.items():
            for smaller in _smaller(best[name], least):
                if tries >= MOST_TRIES:
                    break
                tries += 1
                measured = _again(law, subject, best | {name: smaller})
                if measured is not None and not measured.holds:
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
    got, wanted = actual.detach().double(), expected.detach().double()
    same = got == wanted  # infinities too
    if not bool((torch.isfinite(got) | same).all()):
        if bool((got.isnan() | wanted.isnan()).any()):
            return Measured(math.inf, allowed, f"{what}: NaN", "not finite")
        return Measured(math.inf, allowed, f"{what}: not finite, or hidden differently")
    figure = float((got - wanted).masked_fill(same, 0.0).abs().max()) if got.numel() else 0.0
    return Measured(figure, allowed, what)


def worst(*measured: Measured) -> Measured:
    """The one that breaks its allowance most."""
    return max(measured, key=lambda m: math.inf if math.isnan(m.figure) else m.figure / (m.allowed or 5e-324))


def budget(subject: Subject, expected: Tensor, farthest: int) -> float:
    """How far two ways to compute the same may differ in float32.

    Angles: position·frequency rounds by half a unit of its last place, whichever way it is formed, and the fastest
    frequency is near 1: 4 such errors of `farthest`. Arithmetic: 32 roundings of the largest entry. Results in 16 bits
    are rounded once more, on both sides.
    """
    eps = float(torch.finfo(torch.float32).eps)
    size = max(float(expected.detach().double().nan_to_num(neginf=0.0, posinf=0.0).abs().max()), 1e-6)
    rounded = size * subject.rounding
    return rounded + (size * eps * (32 + 4 * farthest) if subject.seam != "bias" else size * eps * 32 + 4 * eps * farthest)


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
