"""Charts as numbers, before anything draws them: the page (web/src/results) or, in files, matplotlib (pictures.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from posenc.support.languages import Words

NOTHING = Words("")


class Series(NamedTuple):
    """A curve, or one point: `points` are (x, mean, every seed), x ascending.

    arm    whose colour it has: an encoding of the experiment, or a change of RoPE after training; "" for a reference
    kind   "level": a reference value; "changed": beside the encodings; "off": not on the Pareto front
    note   beside the name, where there is room
    """

    name: Words
    arm: str
    points: Sequence[tuple[float, float, Sequence[float]]]
    kind: str = ""
    note: Words = NOTHING


class Chart(NamedTuple):
    """Curves. `ticks` are those of a logarithmic x; `y_range` is that of the numbers if it is left out."""

    series: Sequence[Series]
    x: Words
    y: Words
    described: Words
    ticks: Sequence[float] = ()
    trained: float | None = None
    y_range: tuple[float, float] | None = None
    y_log: bool = False


class Row(NamedTuple):
    """A value with its lowest and highest, and every seed. `hollow`: of what was not learnt."""

    name: Words
    arm: str
    value: float
    low: float
    high: float
    seeds: Sequence[float] = ()
    hollow: bool = False


class Rows(NamedTuple):
    """A row for each name on one axis. `marks` are reference values, each with its word."""

    rows: Sequence[Row]
    x: Words
    described: Words
    marks: Sequence[tuple[float, Words]] = ()
    x_range: tuple[float, float] | None = None
    log: bool = False
