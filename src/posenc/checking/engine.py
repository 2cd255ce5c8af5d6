"""Trying laws: every law on its inputs, a failure shrunk to the smallest input, and run again before it is reported.

A law is a function of a subject and named whole numbers, its input; it returns what it measured. It may raise
`Declined` where it says nothing about this subject.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from posenc.checking.bugs import BUGS
from posenc.checking.result import Result, Verdict
from posenc.checking.subject import Subject

MOST_TRIES = 60  # calls of a law while its input is made smaller
CONFIRMATIONS = 2


class Declined(Exception):
    """The law says nothing about this subject; `verdict` says whether that is the law's or the subject's doing."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict


class Measured(NamedTuple):
    """The largest difference, how much is allowed, and what was compared."""

    figure: float
    allowed: float
    what: str

    @property
    def holds(self) -> bool:
        return self.figure <= self.allowed  # False for NaN


@dataclass(frozen=True)
class Law:
    """A law.

    name      the function's name
    seams     the seams that it applies to, or "model"
    bug       the class of bug that breaks it: a key of BUGS
    inputs    the inputs to try, in this order; each has the same names
    least     the smallest value of each name
    must_run  an error raised by the implementation is a failure; otherwise it is a refusal, "not declared"; what ends
              Python, such as sys.exit(), always is a failure
    measure   the function
    """

    name: str
    seams: tuple[str, ...]
    bug: str
    inputs: tuple[Mapping[str, int], ...]
    least: Mapping[str, int]
    must_run: bool
    measure: Callable[..., Measured]


LAWS: dict[str, Law] = {}


def law(
    *seams: str, bug: str, inputs: Sequence[Mapping[str, int]] = ({},), must_run: bool = False, **least: int
) -> Callable[[Callable[..., Measured]], Callable[..., Measured]]:
    """Adds the function to LAWS. Keyword arguments give the least value of each number of its input; 1 by default."""

    def add(function: Callable[..., Measured]) -> Callable[..., Measured]:
        names = {name for one in inputs for name in one}
        LAWS[function.__name__] = Law(
            function.__name__, seams, bug, tuple(inputs), {name: least.get(name, 1) for name in names}, must_run, function
        )
        assert bug in BUGS
        return function

    return add


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
        return law.measure(subject.fresh(), **given)
    except Declined:
        raise
    except NotImplementedError as error:  # NotExpressible is one
        raise Declined("not declared", str(error) or "the adapter cannot express such input") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        if law.must_run or not isinstance(error, Exception):  # sys.exit() ends its caller's program: that is no refusal
            return Measured(math.inf, 0.0, f"raises {said}")
        raise Declined("not declared", f"it refuses such input with {said}") from error


def _failure(law: Law, subject: Fresh, given: Mapping[str, int], found: Measured) -> Result:
    """The failure at the smallest input found. What fails once and not again keeps a state between calls, or draws."""
    small = _shrunk(law, subject, given)
    for one in (small, given):
        again = [_again(law, subject, one) for _ in range(CONFIRMATIONS)]
        if all(found is not None and not found.holds for found in again):
            smallest = again[0]
            assert smallest is not None
            said = _said(smallest)
            first = _again(law, subject, given) if one != given else None
            if first is not None and first.figure > smallest.figure and not math.isinf(first.figure):
                inputs = ", ".join(f"{name} {value}" for name, value in given.items())
                said += f" (by {first.figure:.3g} at {inputs})"
            return Result(law.name, "failed", said, smallest.figure, smallest.allowed, dict(one), BUGS[law.bug])
    said = f"{_said(found)}, once and not again: it keeps a state between calls, or draws random numbers"
    return Result(law.name, "failed", said, found.figure, found.allowed, dict(given), BUGS[law.bug])


def _again(law: Law, subject: Fresh, given: Mapping[str, int]) -> Measured | None:
    try:
        return _measured(law, subject, given)
    except Declined:
        return None


def _said(found: Measured) -> str:
    if math.isinf(found.figure):
        return found.what
    return f"{found.what}: differs by {found.figure:.3g}, allowed {found.allowed:.3g}"


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


def within_reach(subject: Subject, farthest: int) -> None:
    """Raises Declined where the implementation serves no position so far away."""
    if farthest > subject.reach:
        raise Declined("not applicable", f"it serves positions up to {subject.reach}")


def need_torch(subject: Subject) -> None:
    if subject.is_numpy:
        raise Declined("not applicable", "it computes with NumPy")


def need_module(subject: Subject) -> Any:
    """The module. Raises Declined where none is known."""
    if subject.module is None:
        raise Declined("not applicable", "no torch module is known: the callable is none and carries none as `module`")
    return subject.module
