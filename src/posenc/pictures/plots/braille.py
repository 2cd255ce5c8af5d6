"""A canvas of braille characters: two dots across and four down in each, one colour per character.

1 4
2 5        the bits of U+2800, in the order of their numbers
3 6
7 8
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from posenc.pictures.plots.style import INK

BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # by column, then row


class Canvas:
    """`wide` × `tall` characters that show x_low … x_high, y_low … y_high; what lies outside is left out."""

    def __init__(self, wide: int, tall: int, bounds: tuple[float, float, float, float]) -> None:
        self.wide, self.tall = wide, tall
        x_low, x_high, y_low, y_high = bounds
        self.x_low, self.y_high = x_low, y_high
        self.across = (2 * wide - 1) / (x_high - x_low or 1.0)
        self.down = (4 * tall - 1) / (y_high - y_low or 1.0)
        self.dots = [[0] * wide for _ in range(tall)]
        self.colours: list[list[str]] = [[INK] * wide for _ in range(tall)]
        self.letters: dict[tuple[int, int], str] = {}

    def points(self, x: Sequence[float], y: Sequence[float], colour: str) -> None:
        for x_value, other in zip(x, y, strict=True):
            self._set(*self._place(x_value, other), colour)

    def path(self, x: Sequence[float], y: Sequence[float], colour: str) -> None:
        """Straight lines from point to point."""
        places = [self._place(x_value, other) for x_value, other in zip(x, y, strict=True)]
        for (x0, y0), (x1, y1) in pairwise(places):
            steps = max(abs(x1 - x0), abs(y1 - y0), 1)
            for step in range(steps + 1):
                self._set(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps), colour)

    def dotted(self, y: float, colour: str) -> None:
        """A dotted line across, at height y."""
        _, row = self._place(self.x_low, y)
        for column in range(0, 2 * self.wide, 4):
            self._set(column, row, colour)

    def letter(self, x: float, y: float, character: str) -> None:
        """A character in place of the dots there."""
        column, row = self._place(x, y)
        self.letters[row // 4, column // 2] = character

    def lines(self) -> list[Text]:
        drawn = []
        for row, (dots, colours) in enumerate(zip(self.dots, self.colours, strict=True)):
            line = Text()
            for column, (bits, colour) in enumerate(zip(dots, colours, strict=True)):
                if letter := self.letters.get((row, column)):
                    line.append(letter, style="bold")
                else:
                    line.append(chr(0x2800 + bits) if bits else " ", style=colour if bits else "")
            drawn.append(line)
        return drawn

    def _place(self, x: float, y: float) -> tuple[int, int]:
        return round((x - self.x_low) * self.across), round((self.y_high - y) * self.down)

    def _set(self, column: int, row: int, colour: str) -> None:
        if 0 <= column < 2 * self.wide and 0 <= row < 4 * self.tall:
            self.dots[row // 4][column // 2] |= BITS[column % 2][row % 4]
            self.colours[row // 4][column // 2] = colour
