"""Charts as inline SVG, in both languages at once; colours and fonts come from the page's style sheet.

lines   curves with every seed as a dot, names at their right ends
ratios  a dot and its quartiles per name, on a logarithmic scale
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from posenc.words import Words

LEADING = 17.0  # between two names
NOTHING = Words("", "")


@dataclass(frozen=True)
class Series:
    """A curve: `points` are (x, mean, every seed), x ascending; `kind` is the class that colours it."""

    name: Words
    kind: str
    points: Sequence[tuple[float, float, Sequence[float]]]
    note: Words = NOTHING


class Mark(NamedTuple):
    """A dashed line at one x or one y, with its words."""

    at: float
    words: Words


@dataclass(frozen=True)
class Chart:
    """`trained` is a vertical mark, `level` a horizontal one."""

    series: Sequence[Series]
    ticks: Sequence[tuple[float, str]]
    x_words: Words
    y_words: Words
    described: Words
    trained: Mark
    level: Mark | None
    x_log: bool


class Ratio(NamedTuple):
    name: Words
    kind: str
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Frame:
    """Where data land on paper: x from `left` to `right`, y from `bottom` up to `top`."""

    left: float
    right: float
    top: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_log: bool

    def x(self, value: float) -> float:
        low, high = self.x_range
        share = math.log(value / low) / math.log(high / low) if self.x_log else (value - low) / (high - low)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)


def lines(chart: Chart, *, width: int, height: int) -> str:
    """Names stand at the right, a line apart from each other; on a wide chart with their notes."""
    values = [value for one in chart.series for _, mean, seeds in one.points for value in (mean, *seeds)]
    wide = width > 600
    x_range = (chart.ticks[0][0], chart.ticks[-1][0])
    frame = Frame(40, width - (190 if wide else 128), 46, height - 46, x_range, _range(values), chart.x_log)
    parts = [_grid(frame, chart), _words(4, 14, chart.y_words, "axis", "start")]
    parts.append(_words((frame.left + frame.right) / 2, height - 8, chart.x_words, "axis", "middle"))
    x = frame.x(chart.trained.at)
    parts.append(_line(x, frame.top - 8, x, frame.bottom, "trained"))
    parts.append(_words(x, frame.top - 14, chart.trained.words, "mark", "start" if x < frame.left + 60 else "middle"))
    level = chart.level if chart.level and frame.y_range[0] < chart.level.at < frame.y_range[1] else None
    if level:
        parts.append(_line(frame.left, frame.y(level.at), frame.right, frame.y(level.at), "level"))
    heights = spaced([frame.y(one.points[-1][1]) for one in chart.series], LEADING, 8, height - 12)
    parts += [_series(frame, one, place, wide) for one, place in zip(chart.series, heights, strict=True)]
    if level:
        parts.append(_words(frame.right - 4, frame.y(level.at) - 6, level.words, "mark", "end"))
    return _svg(width, height, parts, chart.described)


def ratios(rows: Sequence[Ratio], *, width: int, described: Words) -> str:
    """The line at 1 is the reference."""
    pitch = 26
    height = pitch * len(rows) + 34
    low = min(0.8, *(row.low for row in rows))
    high = max(2.0, *(row.high for row in rows)) * 1.05
    frame = Frame(178, width - 58, 6, height - 28, (low, high), (0, 1), True)
    parts = []
    for tick in _doublings(low, high):
        parts.append(_line(frame.x(tick), frame.top, frame.x(tick), frame.bottom, "one" if tick == 1 else "grid"))
        parts.append(_text(frame.x(tick), height - 10, f"{tick:g}×", "tick", "middle"))
    for n, row in enumerate(rows):
        y = frame.top + pitch * (n + 0.5)
        spread = _line(frame.x(row.low), y, frame.x(row.high), y, "spread")
        parts.append(_words(frame.left - 10, y + 4, row.name, "name", "end"))
        parts.append(f'<g class="{row.kind}">{spread}{_dot(frame.x(row.median), y, 4.5)}</g>')
        number = f"{row.median:.2f}×" if row.median < 10 else f"{row.median:.0f}×"
        parts.append(_text(width - 4, y + 4, number, "number", "end"))
    return _svg(width, height, parts, described)


def spaced(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Heights as wanted, but `apart` from each other and within low … high; neighbours share what they have to give up."""
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


def _series(frame: Frame, one: Series, label: float, wide: bool) -> str:
    corners = " L".join(f"{frame.x(x):.1f} {frame.y(mean):.1f}" for x, mean, _ in one.points)
    dots = "".join(_dot(frame.x(x), frame.y(seed), 2.6) for x, _, seeds in one.points for seed in seeds)
    end_x, end_y = frame.x(one.points[-1][0]), frame.y(one.points[-1][1])
    leader = _line(end_x + 5, end_y, frame.right + 12, label, "leader")
    said = [f"{name} {note}".rstrip() for name, note in zip(one.name, one.note, strict=True)]
    name = _words(frame.right + 16, label + 4, Words(*said) if wide else one.name, "name", "start")
    tip = f"<title>{html.escape(said[0])}</title>"
    return f'<g class="series {one.kind}">{tip}<path d="M{corners}" class="curve"/>{dots}{leader}{name}</g>'


def _grid(frame: Frame, chart: Chart) -> str:
    low, high = frame.y_range
    step = _step(high - low)
    parts = []
    for n in range(round((high - low) / step) + 1):
        y = frame.y(low + n * step)
        parts.append(_line(frame.left, y, frame.right, y, "grid"))
        parts.append(_text(frame.left - 7, y + 4, f"{low + n * step:g}", "tick", "end"))
    parts += [_text(frame.x(value), frame.bottom + 18, word, "tick", "middle") for value, word in chart.ticks]
    return "".join(parts)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """In whole steps, with a little room."""
    low, high = min(values), max(values)
    step = _step(high - low)
    return math.floor(low / step - 0.1) * step, math.ceil(high / step + 0.1) * step


def _step(span: float) -> float:
    return 0.5 if span <= 2 else 1.0


def _doublings(low: float, high: float) -> Iterable[float]:
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = 1 if len(powers) <= 5 else 2
    return [2.0**power for power in powers if power % every == 0]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _dot(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="dot"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _words(x: float, y: float, words: Words, kind: str, anchor: str) -> str:
    """Once where both languages say the same."""
    if words.en == words.zh:
        return _text(x, y, words.en, kind, anchor)
    return _text(x, y, words.en, f"{kind} en", anchor) + _text(x, y, words.zh, f"{kind} zh", anchor)


def _svg(width: float, height: float, parts: Iterable[str], described: Words) -> str:
    label = html.escape(f"{described.en} {described.zh}")
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
