"""Pictures drawn with characters: half blocks for matrices, braille dots for curves, clocks and paths, blocks for bars.

`draw(picture, width, colour)` gives a rich Text that is at most `width` wide. Without colour (a pipe, NO_COLOR, TERM=dumb)
a matrix shows sign and size by letters, and curves stand one under the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from posenc.pictures.plots import cells, dots
from posenc.pictures.plots.lines import note
from posenc.pictures.plots.picture import Bars, Clocks, Curves, Matrices, Path, Picture, number, rounded
from posenc.pictures.plots.style import BRIGHT, PAIRED

NARROWEST = 40
EIGHTHS = " ▏▎▍▌▋▊▉█"


def coloured(console: Console) -> bool:
    """Whether the console shows colours. With NO_COLOR, rich knows the colours of the terminal and prints none of them."""
    return console.color_system is not None and not console.no_color


def draw(picture: Picture, width: int = 80, colour: bool = True) -> Text:
    """The picture below its title, the two lines with the idea below the picture; at least 40 wide."""
    width = max(width, NARROWEST) - 1
    lines = [*note(picture.title, width, style="bold"), Text()]
    lines += BODIES[type(picture)](picture, width, colour)
    lines += [Text(), *(line for sentence in picture.idea for line in note(sentence, width))]
    return Text("\n").join(lines)


def bars(picture: Bars, width: int, colour: bool) -> list[Text]:
    """One group: a name and its bar on a line. Several: the name above, a line for each of its bars."""
    single = len(picture.groups) == 1
    labels = picture.names if single else tuple(f"  {group.label}" for group in picture.groups)
    margin = max(map(len, labels)) + 1
    present = [abs(value) for group in picture.groups for value in group.values if value]
    top = math.log10(max([*present, picture.floor * 10]) / picture.floor)
    lines = []
    for row, name in enumerate(picture.names):
        lines += [] if single else [Text(name)]
        for n, group in enumerate(picture.groups):
            value = group.values[row]
            line = Text(f"{labels[row if single else n]:<{margin}}", style="" if single else "dim")
            if value is None:
                line.append(picture.absent[: width - margin])
            else:
                share = math.log10(max(abs(value), picture.floor) / picture.floor) / top
                paint = BRIGHT[int(value > 0)] if picture.signed else PAIRED[n % len(PAIRED)]
                line.append(_bar(share * (width - margin - 9)), style=f"not dim {paint}")
                line.append(f" {rounded(value)}")
            lines.append(line)
    return lines + note(f"{picture.unit}, on a logarithmic scale from {number(picture.floor)}", width)


def _bar(length: float) -> str:
    whole, part = divmod(round(length * 8), 8)
    return "█" * whole + (EIGHTHS[part] if part else "")


BODIES: dict[type[Picture], Callable[[Any, int, bool], list[Text]]] = {
    Matrices: cells.matrices,
    Curves: dots.curves,
    Clocks: dots.clocks,
    Path: dots.path,
    Bars: bars,
}
