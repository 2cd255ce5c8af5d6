"""Matrices in a terminal: a cell is one column wide and half a line high, so that it is about square.

Without colour a cell is a letter that shows sign and size: = - · + #, or quarters of a turn: · ( # ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from rich.text import Text

from posenc.pictures.plots.lines import flow, note, thin
from posenc.pictures.plots.picture import Matrices, Panel, number
from posenc.pictures.plots.style import CYCLIC, DIVERGING, NOTHING, mix

TALL = 24  # lines of text that a matrix may take, or
TALLER = 32  # several of them
SIGNS = "=-·+#"  # from -limit to +limit
QUARTERS = "·(#)"  # angles from 0 to 2π


def matrices(picture: Matrices, width: int, colour: bool) -> list[Text]:
    margin, gap = len(str(picture.panels[0].values.shape[0] - 1)) + 1, 3
    count = len(picture.panels)
    rows, columns = picture.panels[0].values.shape
    narrowest = max(min(columns, 24), *(len(panel.title) for panel in picture.panels), 1)
    across = max(1, min(count, 4, width // (margin + narrowest + gap)))
    room = width // across - margin - gap * (across > 1)
    tall = TALL if count == 1 else max(8, TALLER // math.ceil(count / across))
    keep_rows, keep_columns = thin(rows, tall * (2 if colour else 1)), thin(columns, room, picture.paired)
    scale = max(1, min(3, room // len(keep_columns), tall * (2 if colour else 1) // len(keep_rows))) if colour else 1
    blocks = [_panel(picture, panel, keep_rows, keep_columns, scale, margin, colour) for panel in picture.panels]
    lines = [Text(f"{'':{margin}}{picture.columns} →   {picture.rows} ↓", style="dim")]
    for start in range(0, count, across):
        lines += _beside(blocks[start : start + across], gap)
    lines += flow(_scale(picture, colour), width, margin)
    if len(keep_rows) < rows or len(keep_columns) < columns:
        shown = f"{len(keep_rows)} of {rows} rows, {len(keep_columns)} of {columns} columns"
        lines += note(f"shown: {shown}; --out FILE.png shows all", width, margin)
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


def _cell(picture: Matrices, value: float) -> str:
    if math.isnan(value):
        return NOTHING
    if picture.cyclic:
        return mix(CYCLIC, value / picture.limit)
    return mix(DIVERGING, 0.5 + 0.5 * _place(picture, value))


def _letter(picture: Matrices, value: float) -> str:
    if math.isnan(value):
        return " "
    if picture.cyclic:
        return QUARTERS[round(4 * value / picture.limit) % 4]
    return SIGNS[round(2 * _place(picture, value)) + 2]


def _place(picture: Matrices, value: float) -> float:
    if not picture.steps:
        return min(max(value / picture.limit, -1.0), 1.0)
    return float(picture.on_the_scale(torch.tensor(value, dtype=torch.float64)))


def _scale(picture: Matrices, colour: bool) -> list[tuple[str, str, str]]:
    if picture.cyclic:
        names: tuple[str, ...] = ("0", "π/2", "π", "3π/2")
        swatches = [(mix(CYCLIC, n / 4), QUARTERS[n]) for n in range(4)]
    else:
        names = tuple(number(value) for value in picture.ticks)
        places = [_place(picture, value) for value in picture.ticks]
        swatches = [(mix(DIVERGING, 0.5 + 0.5 * place), SIGNS[round(2 * place) + 2]) for place in places]
    return [
        ("██" if colour else letter, swatch if colour else "", name)
        for name, (swatch, letter) in zip(names, swatches, strict=True)
    ]
