"""Curves, paths and clocks in a terminal, drawn with braille dots: two across and four down in every character."""

from __future__ import annotations

import math

import torch
from rich.text import Text
from torch import Tensor

from posenc.pictures.plots.braille import Canvas
from posenc.pictures.plots.lines import flow, note, thin
from posenc.pictures.plots.picture import Clocks, Curves, Line, Path, number
from posenc.pictures.plots.style import BRIGHT, MUTED, SEQUENCE, line_colour, mix

MARGIN = 10  # of the axis, in characters


def curves(picture: Curves, width: int, colour: bool) -> list[Text]:
    apart = picture.stacked or (not colour and 1 < len(picture.lines) <= 4)
    groups = [[line] for line in picture.lines] if apart else [list(picture.lines)]
    tall = max(4, 15 // len(groups))
    lines: list[Text] = []
    bounds = _bounds(picture)
    for first, group in enumerate(groups):
        if apart:
            lines.append(Text(group[0].name, style="" if colour else "bold"))
        lines += _chart(picture, group, bounds, width, tall, first if apart else 0)
    axes = [name + " (log)" * log for name, log in ((picture.x, picture.log_x), (picture.y, picture.log_y))]
    lines += note(f"x: {axes[0]}   y: {axes[1]}", width, MARGIN)
    if not apart and len(picture.lines) > 1:
        colours = [line_colour(n, len(picture.lines), BRIGHT) for n in range(len(picture.lines))]
        lines += flow(
            [("━━", colour, line.name) for colour, line in zip(colours, picture.lines, strict=True)], width, MARGIN
        )
    lines += flow([("●", "bold", mark.text) for mark in picture.marks], width, MARGIN) if picture.marks else []
    return lines + (note(f"┄ {picture.rule.text}", width, MARGIN) if picture.rule is not None else [])


def _bounds(picture: Curves) -> tuple[float, float, float, float]:
    x = torch.cat([_along(line.x, picture.log_x) for line in picture.lines])
    y = torch.cat([_along(line.y, picture.log_y) for line in picture.lines])
    return float(x.min()), float(x.max()), float(y.min()), float(y.max())


def _chart(
    picture: Curves, group: list[Line], bounds: tuple[float, float, float, float], width: int, tall: int, first: int
) -> list[Text]:
    canvas = Canvas(width - MARGIN - 1, tall, bounds)
    if picture.rule is not None:
        level = math.log10(picture.rule.y) if picture.log_y else picture.rule.y
        canvas.dotted(level, MUTED)
    for n, line in enumerate(group):
        x, y = _along(line.x, picture.log_x).tolist(), _along(line.y, picture.log_y).tolist()
        colour = line_colour(first + n, len(picture.lines), BRIGHT)
        if line.points:
            canvas.points(x, y, colour)
        else:
            canvas.path(x, y, colour)
    for mark in picture.marks:
        if any(bool(((line.x == mark.x) & (line.y == mark.y)).any()) for line in group):
            canvas.letter(_scalar(mark.x, picture.log_x), _scalar(mark.y, picture.log_y), "●")
    x_low, x_high, y_low, y_high = bounds
    ends = [
        number(10**value if log else value)
        for value, log in ((y_high, picture.log_y), (y_low, picture.log_y), (x_low, picture.log_x), (x_high, picture.log_x))
    ]
    lines = []
    for row, drawn in enumerate(canvas.lines()):
        label = ends[0] if row == 0 else ends[1] if row == tall - 1 else ""
        labelled = Text(f"{label:>{MARGIN - 1}} ", style="dim")
        labelled.append("┤" if label else "│")
        labelled.append_text(drawn)
        lines.append(labelled)
    lines.append(
        Text(f"{'':{MARGIN}}{ends[2]}{ends[3]:>{max(width - MARGIN - len(ends[2]), len(ends[3]) + 1)}}", style="dim")
    )
    return lines


def _along(values: Tensor, log: bool) -> Tensor:
    return values.double().log10() if log else values.double()


def _scalar(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def path(picture: Path, width: int, colour: bool) -> list[Text]:
    points = picture.points.double()
    low, high = points.min(dim=0).values, points.max(dim=0).values
    reach = float(max((high - low)[0] / 2, (high - low)[1]).clamp(min=1e-12)) / 2  # the picture is twice as wide as high
    middle = ((low + high) / 2).tolist()
    tall = min(20, width // 4)
    canvas = Canvas(4 * tall, tall, (middle[0] - 2 * reach, middle[0] + 2 * reach, middle[1] - reach, middle[1] + reach))
    x, y = points.unbind(dim=1)
    last = len(points) - 1
    for n in range(last):
        canvas.path(x[n : n + 2].tolist(), y[n : n + 2].tolist(), mix(SEQUENCE, n / max(last - 1, 1)))
    canvas.letter(float(x[0]), float(y[0]), "●")
    canvas.letter(float(x[last]), float(y[last]), "◆")
    ends = [("●", "bold", "position 0"), ("◆", "bold", f"position {last}"), ("", "", "axes: the two principal ones")]
    return [*canvas.lines(), *flow(ends, width, 0)]


def clocks(picture: Clocks, width: int, colour: bool) -> list[Text]:
    wide, tall, margin, gap = 8, 4, 8, 1
    shown = thin(len(picture.pairs), (width - margin) // (wide + gap))
    lines = [
        Text(f"{'pair':<{margin}}" + "".join(f"{picture.pairs[n]:^{wide + gap}}" for n in shown), style="dim"),
        Text(f"{'λ':<{margin}}" + "".join(f"{number(picture.wavelengths[n]):^{wide + gap}}" for n in shown), style="dim"),
    ]
    circle = torch.linspace(0, 2 * math.pi, 60, dtype=torch.float64)
    for row, position in enumerate(picture.positions):
        dials = []
        for n in shown:
            canvas = Canvas(wide, tall, (-1.1, 1.1, -1.1, 1.1))
            canvas.points(circle.sin().tolist(), circle.cos().tolist(), MUTED)
            angle = float(picture.angles[row, n])
            canvas.path([0, 0.75 * math.sin(angle)], [0, 0.75 * math.cos(angle)], BRIGHT[1])
            dials.append(canvas.lines())
        for part in range(tall):
            line = Text(f"{f'at {position}' if part == tall // 2 else '':<{margin}}", style="dim")
            for dial in dials:
                line.append_text(dial[part])
                line.append(" " * gap)
            lines.append(line)
    return lines
