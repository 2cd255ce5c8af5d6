"""Charts as inline SVG that contain both languages; colours and fonts come from the style sheet of the page.

lines     curves with every seed as a dot, names at their right ends
strips    every seed as a dot and the mean as a stroke per name
ratios    a dot and its quartiles per name, on a logarithmic scale
scatter   a dot and its two intervals per name, names beside them
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from posenc.support.languages import Words

LEADING = 17.0  # pixels between two names
NOTHING = Words("")

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Series:
    """A curve: `points` are (x, mean, every seed), x ascending; `kind` holds the classes for its colour and dashes.

    `rings` are single points (x, y) of the same name that are not on the curve.
    """

    name: Words
    kind: str
    points: Sequence[tuple[float, float, Sequence[float]]]
    note: Words = NOTHING
    rings: Sequence[tuple[float, float]] = ()


class Mark(NamedTuple):
    """A dashed vertical line at one x, with its label."""

    at: float
    words: Words


class Level(NamedTuple):
    """A dotted reference line with its label: points (x, y), x ascending."""

    points: Sequence[tuple[float, float]]
    words: Words


def level(height: float, xs: Sequence[float], words: Words) -> Level:
    return Level([(x, height) for x in (xs[0], xs[-1])], words)


@dataclass(frozen=True)
class Chart:
    """A chart. `levels` outside the range of the curves are left out; `y_range` overrides that range."""

    series: Sequence[Series]
    ticks: Sequence[tuple[float, str]]
    x_words: Words
    y_words: Words
    described: Words
    trained: Mark | None
    x_log: bool
    levels: Sequence[Level] = ()
    y_range: tuple[float, float] | None = None


class Strip(NamedTuple):
    """A row of dots; hollow dots mark what was not learnt."""

    name: Words
    kind: str
    mean: float
    seeds: Sequence[float]
    hollow: bool


class Ratio(NamedTuple):
    name: Words
    kind: str
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Frame:
    """Maps data to coordinates of the drawing: x from `left` to `right`, y from `bottom` up to `top`."""

    left: float
    right: float
    top: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_log: bool
    y_log: bool = False

    def x(self, value: float) -> float:
        return self.left + _share(value, self.x_range, self.x_log) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - _share(value, self.y_range, self.y_log) * (self.bottom - self.top)


def _share(value: float, within: tuple[float, float], log: bool) -> float:
    """The share 0 … 1 of the range; ½ if the range has one value."""
    low, high = within
    if low == high:
        return 0.5
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)


def lines(chart: Chart, *, width: int, height: int) -> str:
    """The chart. Names are at the right, one line apart; a wide chart adds their notes."""
    values = [value for curve in chart.series for _, mean, seeds in curve.points for value in (mean, *seeds)]
    values += [y for curve in chart.series for _, y in curve.rings]
    wide = width > 600
    x_range = (chart.ticks[0][0], chart.ticks[-1][0])
    y_range = chart.y_range or _range(values)
    frame = Frame(44, width - (190 if wide else 128), 46, height - 46, x_range, y_range, chart.x_log)
    parts = [_grid(frame, chart), spoken(4, 14, chart.y_words, "axis", "start")]
    parts.append(spoken((frame.left + frame.right) / 2, height - 8, chart.x_words, "axis", "middle"))
    if chart.trained:
        x = frame.x(chart.trained.at)
        parts.append(line(x, frame.top - 8, x, frame.bottom, "trained"))
        parts.append(spoken(x, frame.top - 14, chart.trained.words, "mark", "start" if x < frame.left + 60 else "middle"))
    levels = [level for level in chart.levels if all(y_range[0] <= y <= y_range[1] for _, y in level.points)]
    parts += [f'<path d="{_corners(frame, level.points)}" class="level"/>' for level in levels]
    heights = spaced([frame.y(_end(curve)[1]) for curve in chart.series], LEADING, 8, frame.bottom)
    parts += [_series(frame, curve, place, wide) for curve, place in zip(chart.series, heights, strict=True)]
    for level in levels:  # above its line, or below it where the name of the trained length stands above
        y = frame.y(level.points[0][1])
        parts.append(spoken(frame.left + 6, y - 6 if y > frame.top + 8 else y + 13, level.words, "mark", "start"))
    return picture(width, height, parts, chart.described)


def ratios(rows: Sequence[Ratio], *, width: int, described: Words) -> str:
    """The chart of ratios, with a reference line at 1."""
    pitch = 26
    height = pitch * len(rows) + 34
    low = min(0.8, *(row.low for row in rows))
    high = max(2.0, *(row.high for row in rows)) * 1.05
    frame = Frame(178, width - 58, 6, height - 28, (low, high), (0, 1), True)
    parts = []
    for tick in _doublings(low, high):
        parts.append(line(frame.x(tick), frame.top, frame.x(tick), frame.bottom, "one" if tick == 1 else "grid"))
        parts.append(text(frame.x(tick), height - 10, f"{tick:g}×", "tick", "middle"))
    for n, row in enumerate(rows):
        y = frame.top + pitch * (n + 0.5)
        spread = line(frame.x(row.low), y, frame.x(row.high), y, "spread")
        parts.append(spoken(frame.left - 10, y + 4, row.name, "name", "end"))
        parts.append(f'<g class="{row.kind}">{spread}{dot(frame.x(row.median), y, 4.5)}</g>')
        number = f"{row.median:.2f}×" if row.median < 10 else f"{row.median:.0f}×"
        parts.append(text(width - 4, y + 4, number, "number", "end"))
    return picture(width, height, parts, described)


@dataclass(frozen=True)
class Spot:
    """A point of two measures, each with low and high."""

    name: Words
    kind: str
    x: tuple[float, float, float]  # low, middle, high
    y: tuple[float, float, float]
    front: bool  # no other is better in both


@dataclass(frozen=True)
class Axis:
    words: Words
    ticks: Sequence[tuple[float, str]]
    log: bool

    @property
    def range(self) -> tuple[float, float]:
        return self.ticks[0][0], self.ticks[-1][0]


def scatter(spots: Sequence[Spot], x: Axis, y: Axis, *, width: int, height: int, described: Words) -> str:
    """The scatter chart; filled dots are on the Pareto front."""
    left, right, top, bottom = 44.0, width - 16.0, 28.0, height - 46.0
    frame = Frame(left + 12, right - 12, top + 14, bottom - 14, x.range, y.range, x.log, y.log)
    parts = [spoken(4, 14, y.words, "axis", "start")]
    parts.append(spoken((left + right) / 2, height - 8, x.words, "axis", "middle"))
    for value, word in y.ticks:
        parts.append(line(left, frame.y(value), right, frame.y(value), "grid"))
        parts.append(text(left - 7, frame.y(value) + 4, word, "tick", "end"))
    for n in apart([frame.x(value) for value, _ in x.ticks], 34):
        value, word = x.ticks[n]
        parts.append(line(frame.x(value), top, frame.x(value), bottom, "grid"))
        parts.append(text(frame.x(value), bottom + 18, word, "tick", "middle"))
    dots = [(frame.x(spot.x[1]), frame.y(spot.y[1])) for spot in spots]
    sizes = [(7.4 * max(map(written, spot.name.both())), LEADING - 2) for spot in spots]
    for spot, (at_x, at_y), (from_x, from_y), size in zip(
        spots, dots, label_places(dots, sizes, (left, top, right, bottom), bars(frame, spots)), sizes, strict=True
    ):
        spread = line(frame.x(spot.x[0]), at_y, frame.x(spot.x[2]), at_y, "spread")
        spread += line(at_x, frame.y(spot.y[0]), at_x, frame.y(spot.y[2]), "spread")
        nearest = min(max(at_x, from_x), from_x + size[0]), min(max(at_y, from_y), from_y + size[1])
        leader = line(at_x, at_y, *nearest, "leader") if math.dist((at_x, at_y), nearest) > 14 else ""
        name = spoken(from_x + size[0] / 2, from_y + size[1] - 4, spot.name, "name", "middle")
        circle = dot(at_x, at_y, 5.5, "dot" if spot.front else "ring")
        parts.append(f'<g class="series {spot.kind}">{spread}{leader}{circle}{name}</g>')
    return picture(width, height, parts, described)


def bars(frame: Frame, spots: Sequence[Spot]) -> list[Box]:
    """The range that the intervals of `spots` cover."""
    across = [(frame.x(spot.x[0]), frame.y(spot.y[1]) - 3, frame.x(spot.x[2]), frame.y(spot.y[1]) + 3) for spot in spots]
    down = [(frame.x(spot.x[1]) - 3, frame.y(spot.y[2]), frame.x(spot.x[1]) + 3, frame.y(spot.y[0])) for spot in spots]
    return across + down


def written(letters: str) -> float:
    """The width of a text, in Latin letters."""
    return sum(1.0 if ord(letter) < 0x2E80 else 1.8 for letter in letters)


def label_places(
    dots: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], within: Box, over: Sequence[Box] = ()
) -> list[tuple[float, float]]:
    """Left and top of the name beside each dot: `within` the frame, and without overlaps if there is room."""
    left, top, right, bottom = within
    taken = [*over, *((x - 6, y - 6, x + 6, y + 6) for x, y in dots)]

    def overlap(first: Box, other: Box) -> float:
        wide, high = min(first[2], other[2]) - max(first[0], other[0]), min(first[3], other[3]) - max(first[1], other[1])
        return max(wide, 0.0) * max(high, 0.0)

    places = []
    for (x, y), (width, height) in zip(dots, sizes, strict=True):
        best: tuple[float, Box] | None = None
        for away in (9.0, 20.0, 34.0, 50.0, 70.0):
            for turn in range(16):
                angle = turn * math.pi / 8
                middle_x = x + math.cos(angle) * (away + width / 2)
                middle_y = y + math.sin(angle) * (away + height / 2)
                box = (middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)
                out = max(left - box[0], 0) + max(box[2] - right, 0) + max(top - box[1], 0) + max(box[3] - bottom, 0)
                harm = sum(overlap(box, other) for other in taken) + 20 * out + away / 10
                if best is None or harm < best[0]:
                    best = harm, box
        assert best is not None
        taken.append(best[1])
        places.append(best[1][:2])
    return places


def strips(rows: Sequence[Strip], axis: Axis, levels: Sequence[Mark], *, width: int, described: Words) -> str:
    """The chart of strips: names at the left, reference values as vertical lines."""
    pitch = 26
    height = pitch * len(rows) + 62
    frame = Frame(150, width - 24, 24, height - 38, axis.range, (0, 1), axis.log)
    parts = [spoken((frame.left + frame.right) / 2, height - 4, axis.words, "axis", "middle")]
    for value, word in axis.ticks:
        parts.append(line(frame.x(value), frame.top, frame.x(value), frame.bottom, "grid"))
        parts.append(text(frame.x(value), frame.bottom + 16, word, "tick", "middle"))
    for mark in levels:
        parts.append(line(frame.x(mark.at), frame.top, frame.x(mark.at), frame.bottom, "level"))
        parts.append(spoken(frame.x(mark.at), frame.top - 8, mark.words, "mark", "middle"))
    for n, row in enumerate(rows):
        y = frame.top + pitch * (n + 0.5)
        dots = "".join(dot(frame.x(seed), y, 3.6, "ring" if row.hollow else "dot") for seed in row.seeds)
        mean = line(frame.x(row.mean), y - 8, frame.x(row.mean), y + 8, "mean")
        parts.append(
            f'<g class="series {row.kind}">{spoken(frame.left - 12, y + 4, row.name, "name", "end")}{mean}{dots}</g>'
        )
    return picture(width, height, parts, described)


def spaced(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """The wanted heights, moved to be `apart` from each other and within low … high; neighbours share the shift."""
    groups: list[list[int]] = []

    def heights(group: Sequence[int]) -> list[float]:
        half = apart * (len(group) - 1) / 2
        middle = min(max(sum(wanted[n] for n in group) / len(group), low + half), high - half)
        return [middle - half + apart * place for place in range(len(group))]

    for n in sorted(range(len(wanted)), key=lambda n: wanted[n]):
        groups.append([n])
        while len(groups) > 1 and heights(groups[-2])[-1] + apart > heights(groups[-1])[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    placed = {n: height for group in groups for n, height in zip(group, heights(group), strict=True)}
    return [placed[n] for n in range(len(wanted))]


def _series(frame: Frame, series: Series, label: float, wide: bool) -> str:
    curve = (
        f'<path d="{_corners(frame, [(x, mean) for x, mean, _ in series.points])}" class="curve"/>' if series.points else ""
    )
    dots = "".join(dot(frame.x(x), frame.y(seed), 2.6) for x, _, seeds in series.points for seed in seeds)
    rings = "".join(dot(frame.x(x), frame.y(y), 4, "ring") for x, y in series.rings)
    end_x, end_y = (frame.x(_end(series)[0]), frame.y(_end(series)[1]))
    # A line from a curve that ends early would cross the picture like a curve of its own.
    leader = line(end_x + 5, end_y, frame.right + 12, label, "leader") if frame.right - end_x < 40 else ""
    noted = [f"{name} {note}".rstrip() for name, note in zip(series.name.both(), series.note.both(), strict=True)]
    name = spoken(frame.right + 16, label + 4, Words(*noted) if wide else series.name, "name", "start")
    tip = f"<title>{html.escape(' · '.join(dict.fromkeys(noted)))}</title>"
    return f'<g class="series {series.kind}">{tip}{curve}{dots}{rings}{leader}{name}</g>'


def _end(series: Series) -> tuple[float, float]:
    """The point that its name is connected to."""
    return series.points[-1][:2] if series.points else series.rings[-1]


def _corners(frame: Frame, points: Iterable[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in points)


def _grid(frame: Frame, chart: Chart) -> str:
    low, high = frame.y_range
    step = step_of(high - low)
    parts = []
    for n in range(round((high - low) / step) + 1):
        y = frame.y(low + n * step)
        parts.append(line(frame.left, y, frame.right, y, "grid"))
        parts.append(text(frame.left - 7, y + 4, f"{low + n * step:.6g}", "tick", "end"))
    kept = apart([frame.x(value) for value, _ in chart.ticks], 30)
    parts += [
        text(frame.x(value), frame.bottom + 18, word, "tick", "middle")
        for value, word in map(chart.ticks.__getitem__, kept)
    ]
    return "".join(parts)


def apart(places: Sequence[float], least: float) -> list[int]:
    """Keeps the last one and, from the left, those at least `least` away from the ones kept."""
    kept: list[int] = []
    for n, place in enumerate(places[:-1]):
        if places[-1] - place >= least and (not kept or place - places[kept[-1]] >= least):
            kept.append(n)
    return [*kept, len(places) - 1]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The range of the axis in whole steps, with a margin."""
    low, high = min(values), max(values)
    step = step_of(high - low)
    while True:
        within = math.floor(low / step - 0.1) * step, math.ceil(high / step + 0.1) * step
        if (wider := step_of(within[1] - within[0])) == step:
            return within
        step = wider  # the margin made the grid coarser: use whole steps of the new grid


def step_of(span: float) -> float:
    """The step of the grid: the smallest of 1, 2, 5 times a power of ten that gives at most six steps."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-9) / 6))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if span <= 6 * step * (1 + 1e-9))


def _doublings(low: float, high: float) -> Iterable[float]:
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = 1 if len(powers) <= 5 else 2
    return [2.0**power for power in powers if power % every == 0]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def dot(x: float, y: float, radius: float, kind: str = "dot") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"/>'


def text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(text)}</text>'


def spoken(x: float, y: float, words: Words, kind: str, anchor: str) -> str:
    """The text in both languages; once if they are equal."""
    if words.en == words.zh:
        return text(x, y, words.en, kind, anchor)
    return text(x, y, words.en, f"{kind} en", anchor) + text(x, y, words.zh, f"{kind} zh", anchor)


def picture(width: float, height: float, parts: Iterable[str], described: Words) -> str:
    label = html.escape(f"{described.en} {described.zh}")
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
