"""Fits sentences, legends, rows and columns into a width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.text import Text


def note(sentence: str, width: int, indent: int = 0, style: str = "dim") -> list[Text]:
    """A sentence, broken at its spaces."""
    room = max(width - indent, 20)
    return [Text(" " * indent + line, style=style) for line in textwrap.wrap(sentence, room) or [""]]


def flow(items: Iterable[tuple[str, str, str]], width: int, indent: int) -> list[Text]:
    """Swatches with their names, as many on a line as fit: (swatch, its style, name)."""
    lines = [Text(" " * indent)]
    for swatch, style, full in items:
        name = textwrap.shorten(full, max(width - indent - len(swatch) - 1, 12), placeholder=" …")
        if lines[-1].cell_len > indent and lines[-1].cell_len + len(swatch) + 1 + len(name) > width:
            lines.append(Text(" " * indent))
        lines[-1].append(swatch, style=style)
        lines[-1].append(f" {name}", style="dim")
        lines[-1].append("   ")
    for line in lines:
        line.rstrip()
    return lines


def thin(count: int, room: int, paired: bool = False) -> list[int]:
    """Which of `count` to show in `room`: evenly spread, both members of a pair or neither."""
    if count <= room:
        return list(range(count))
    if paired:
        return [2 * pair + member for pair in thin(count // 2, max(room // 2, 1)) for member in (0, 1)]
    return [round(n * (count - 1) / max(room - 1, 1)) for n in range(room)]
