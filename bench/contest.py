"""One comparison: a floor, contenders on the same inputs, and the exact result.

A contender is made only when its turn comes, so that a missing or failing peer does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

Results = Callable[[], Sequence[Tensor]]


class Unavailable(Exception):
    """A contender cannot run; the report states the reason."""


@dataclass(frozen=True)
class Contender:
    """What takes part, ready to run: `call` is timed, `results` are compared with the truth."""

    call: Callable[[], object]
    results: Results


def from_call(call: Callable[[], Sequence[Tensor]]) -> Contender:
    """A contender whose results are what its call returns."""
    return Contender(call, call)


@dataclass(frozen=True)
class Entry:
    """What makes a contender. `package` is the distribution it needs; "posenc" marks ours, which the gate judges."""

    name: str
    package: str
    make: Callable[[], Contender]
    truth: str = ""  # which exact result of the contest it computes
    share: float | None = None  # pairs that may attend, of the floor's; None where they are the same
    squares: float = 0.0  # how many arrays [b, h, i, j] of float32 it holds at once, at least

    @property
    def ours(self) -> bool:
        return self.package == "posenc"


@dataclass(frozen=True)
class Contest:
    """`floor` is timed with every contender and has no result to check. Truths are fp64, made only when asked for."""

    floor: Entry
    entries: list[Entry]
    truths: dict[str, Results]
    allowed: Callable[[str, Sequence[Tensor]], list[float]]  # the largest error of ours, for each result of that truth
    results: tuple[str, ...] = ("",)  # names of the results
    moved: int | None = None  # bytes that a call must read and write
    repeat: int = 1  # calls in a turn, where one is too short to time
    notes: list[str] = field(default_factory=list)
