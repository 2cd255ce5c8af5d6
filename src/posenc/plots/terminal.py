"""Pictures drawn with characters: half blocks for matrices, braille dots for curves, clocks and paths, blocks for bars.

`draw(picture, width, colour)` gives a rich Text that is at most `width` wide. Without colour (a pipe, NO_COLOR) a matrix
shows sign and size by letters, and curves stand one under the other.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from functools import singledispatch

import torch
from rich.text import Text
from torch import Tensor

from posenc.plots.braille import Canvas
from posenc.plots.picture import Bars, Clocks, Curves, Line, Matrices, Panel, Path, Picture, number, rounded
from posenc.plots.style import BRIGHT, CYCLIC, DIVERGING, MUTED, NOTHING, PAIRED, SEQUENCE, line_colour, mix

TALL = 24  # lines of text that a matrix may take, or
TALLER = 32  # several of them
SIGNS = "=-·+#"  # from -limit to +limit
QUARTERS = "·(#)"  # angles from 0 to 2π
EIGHTHS = " ▏▎▍▌▋▊▉█"


def draw(picture: Picture, width: int = 80, colour: bool = True) -> Text:
    """The picture below its title, the two lines with the idea below the picture."""
    width = max(width, 40)
    lines = [Text(line, style="bold") for line in textwrap.wrap(picture.title, width - 1)]
    lines += [Text(), *body(picture, width - 1, colour), Text()]
    lines += [Text(line, style="dim") for sentence in picture.idea for line in textwrap.wrap(sentence, width - 1)]
    return Text("\n").join(lines)


@singledispatch
def body(picture: Picture, width: int, colour: bool) -> list[Text]:
    raise TypeError(f"no way to draw a {type(picture).__name__} in a terminal")


# Matrices: one cell is one column wide and half a line high, so that it is about square.


@body.register(Matrices)
def _matrices(picture: Matrices, width: int, colour: bool) -> list[Text]:
    margin, gap = len(str(picture.panels[0].values.shape[0] - 1)) + 1, 3
    count = len(picture.panels)
    rows, columns = picture.panels[0].values.shape
    across = max(1, min(count, 4, width // (margin + min(columns, 24) + gap)))
    room = width // across - margin - gap * (across > 1)
    tall = TALL if count == 1 else max(8, TALLER // math.ceil(count / across))
    keep_rows, keep_columns = _thin(rows, tall * (2 if colour else 1)), _thin(columns, room, picture.paired)
    scale = max(1, min(3, room // len(keep_columns), tall * (2 if colour else 1) // len(keep_rows))) if colour else 1
    blocks = [_panel(picture, panel, keep_rows, keep_columns, scale, margin, colour) for panel in picture.panels]
    lines = [Text(f"{'':{margin}}{picture.columns} →   {picture.rows} ↓", style="dim")]
    for start in range(0, count, across):
        lines += _beside(blocks[start : start + across], gap)
    lines.append(_scale(picture, margin, colour))
    if len(keep_rows) < rows or len(keep_columns) < columns:
        shown = f"{len(keep_rows)} of {rows} rows, {len(keep_columns)} of {columns} columns"
        lines.append(Text(f"{'':{margin}}shown: {shown}; --out FILE.png shows all", style="dim"))
    return lines


def _panel(
    picture: Matrices, panel: Panel, rows: list[int], columns: list[int], scale: int, margin: int, colour: bool
) -> list[Text]:
    values = panel.values[rows][:, columns].repeat_interleave(scale, dim=1)
    names = [row for row in rows for _ in range(scale)]
    cells = values.repeat_interleave(scale, dim=0).tolist()
    lines = [Text(f"{'':{margin}}{panel.title}")] if panel.title else []
    step, labelled = 2 if colour else 1, 0
    for top in range(0, len(cells), step):
        starts = top == 0 or (top >= labelled + 4 * step and names[top] != names[top - 1])
        labelled = top if starts else labelled
        line = Text(f"{names[top] if starts else '':>{margin - 1}} ", style="dim")
        if colour:
            below = cells[top + 1] if top + 1 < len(cells) else None
            for column, value in enumerate(cells[top]):
                lower = f" on {_cell(picture, below[column])}" if below else ""
                line.append("▀", style=f"not dim {_cell(picture, value)}{lower}")
        else:
            line.append("".join(_letter(picture, value) for value in cells[top]), style="not dim")
        lines.append(line)
    first, last = str(columns[0]), str(columns[-1])
    lines.append(Text(f"{'':{margin}}{first}{last:>{max(len(cells[0]) - len(first), len(last) + 1)}}", style="dim"))
    return lines


def _beside(blocks: Sequence[list[Text]], gap: int) -> list[Text]:
    wide = [max(line.cell_len for line in block) for block in blocks]
    lines = []
    for row in range(max(map(len, blocks))):
        line = Text()
        for block, width in zip(blocks, wide, strict=True):
            part = block[row].copy() if row < len(block) else Text()
            part.pad_right(width + gap - part.cell_len)
            line.append_text(part)
        line.rstrip()
        lines.append(line)
    return lines


def _thin(count: int, room: int, paired: bool = False) -> list[int]:
    """Which of `count` to show in `room`: evenly spread, both members of a pair or neither."""
    if count <= room:
        return list(range(count))
    if paired:
        return [2 * pair + member for pair in _thin(count // 2, max(room // 2, 1)) for member in (0, 1)]
    return [round(n * (count - 1) / max(room - 1, 1)) for n in range(room)]


def _cell(picture: Matrices, value: float) -> str:
    if math.isnan(value):
        return NOTHING
    if picture.cyclic:
        return mix(CYCLIC, value / picture.limit)
    return mix(DIVERGING, 0.5 + 0.5 * value / picture.limit)


def _letter(picture: Matrices, value: float) -> str:
    if math.isnan(value):
        return " "
    if picture.cyclic:
        return QUARTERS[round(4 * value / picture.limit) % 4]
    return SIGNS[round(2 * min(max(value / picture.limit, -1.0), 1.0)) + 2]


def _scale(picture: Matrices, margin: int, colour: bool) -> Text:
    line = Text(" " * margin, style="dim")
    if picture.cyclic:
        names: tuple[str, ...] = ("0", "π/2", "π", "3π/2")
        swatches = [(mix(CYCLIC, n / 4), QUARTERS[n]) for n in range(4)]
    else:
        names = tuple(number(picture.limit * n / 2) for n in range(-2, 3))
        swatches = [(mix(DIVERGING, (n + 2) / 4), SIGNS[n + 2]) for n in range(-2, 3)]
    for name, (swatch, letter) in zip(names, swatches, strict=True):
        line.append("██" if colour else letter, style=f"not dim {swatch}" if colour else "not dim")
        line.append(f" {name}   ")
    line.rstrip()
    return line


# Curves: two dots across and four down in every character.


@body.register(Curves)
def _curves(picture: Curves, width: int, colour: bool) -> list[Text]:
    apart = picture.stacked or (not colour and 1 < len(picture.lines) <= 4)
    groups = [[line] for line in picture.lines] if apart else [list(picture.lines)]
    tall = max(4, 15 // len(groups))
    lines: list[Text] = []
    bounds = _bounds(picture)
    for first, group in enumerate(groups):
        if apart:
            lines.append(Text(group[0].name, style="" if colour else "bold"))
        lines += _chart(picture, group, bounds, width, tall, first if apart else 0)
    lines.append(Text(f"{'':10}x: {picture.x}" + (" (log)" if picture.log_x else "") + f"   y: {picture.y}"
                      + (" (log)" if picture.log_y else ""), style="dim"))  # fmt: skip
    if not apart and len(picture.lines) > 1:
        lines += _legend(
            [(line.name, line_colour(n, len(picture.lines), BRIGHT)) for n, line in enumerate(picture.lines)], width
        )
    lines += [Text(f"{'':10}● {mark.text}", style="dim") for mark in picture.marks]
    if picture.rule is not None:
        lines.append(Text(f"{'':10}┄ {picture.rule.text}", style="dim"))
    return lines


def _bounds(picture: Curves) -> tuple[float, float, float, float]:
    x = torch.cat([_along(line.x, picture.log_x) for line in picture.lines])
    y = torch.cat([_along(line.y, picture.log_y) for line in picture.lines])
    return float(x.min()), float(x.max()), float(y.min()), float(y.max())


def _chart(
    picture: Curves, group: list[Line], bounds: tuple[float, float, float, float], width: int, tall: int, first: int
) -> list[Text]:
    canvas = Canvas(width - 11, tall, bounds)
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
    ends = [number(10**value if log else value) for value, log in
            ((y_high, picture.log_y), (y_low, picture.log_y), (x_low, picture.log_x), (x_high, picture.log_x))]  # fmt: skip
    lines = []
    for row, drawn in enumerate(canvas.lines()):
        label = ends[0] if row == 0 else ends[1] if row == tall - 1 else ""
        labelled = Text(f"{label:>9} ", style="dim")
        labelled.append("┤" if label else "│")
        labelled.append_text(drawn)
        lines.append(labelled)
    lines.append(Text(f"{'':10}{ends[2]}{ends[3]:>{max(width - 10 - len(ends[2]), len(ends[3]) + 1)}}", style="dim"))
    return lines


def _along(values: Tensor, log: bool) -> Tensor:
    return values.double().log10() if log else values.double()


def _scalar(value: float, log: bool) -> float:
    return math.log10(value) if log else value


@body.register(Path)
def _path(picture: Path, width: int, colour: bool) -> list[Text]:
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
    return [*canvas.lines(), Text(f"● position 0   ◆ position {last}   axes: the two principal ones", style="dim")]


@body.register(Clocks)
def _clocks(picture: Clocks, width: int, colour: bool) -> list[Text]:
    wide, tall, margin, gap = 8, 4, 8, 1
    shown = _thin(len(picture.pairs), (width - margin) // (wide + gap))
    lines = [Text(f"{'pair':<{margin}}" + "".join(f"{picture.pairs[n]:^{wide + gap}}" for n in shown), style="dim"),
             Text(f"{'λ':<{margin}}" + "".join(f"{number(picture.wavelengths[n]):^{wide + gap}}" for n in shown),
                  style="dim")]  # fmt: skip
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


@body.register(Bars)
def _bars(picture: Bars, width: int, colour: bool) -> list[Text]:
    names = max(map(len, picture.names))
    labels = max(len(group.label) for group in picture.groups) if len(picture.groups) > 1 else 0
    room = width - names - labels - 13
    present = [abs(value) for group in picture.groups for value in group.values if value]
    top = math.log10(max([*present, picture.floor * 10]) / picture.floor)
    lines = []
    for row, name in enumerate(picture.names):
        for n, group in enumerate(picture.groups):
            value = group.values[row]
            line = Text(f"{name if n == 0 else '':<{names}} ")
            if labels:
                line.append(f"{group.label:<{labels}} ", style="dim")
            if value is None:
                line.append(picture.absent, style="dim")
            else:
                share = math.log10(max(abs(value), picture.floor) / picture.floor) / top
                paint = BRIGHT[int(value > 0)] if picture.signed else PAIRED[n % len(PAIRED)]
                line.append(_bar(share * room), style=paint)
                line.append(f" {rounded(value)}", style="dim")
            lines.append(line)
    lines.append(Text(f"{picture.unit}, on a logarithmic scale from {number(picture.floor)}", style="dim"))
    return lines


def _bar(length: float) -> str:
    whole, part = divmod(round(length * 8), 8)
    return "█" * whole + (EIGHTHS[part] if part else "")


def _legend(entries: Iterable[tuple[str, str]], width: int) -> list[Text]:
    lines = [Text(" " * 10)]
    for name, colour in entries:
        if lines[-1].cell_len + len(name) + 6 > width and lines[-1].cell_len > 10:
            lines.append(Text(" " * 10))
        lines[-1].append("━━", style=colour)
        lines[-1].append(f" {name}   ", style="dim")
    return lines
