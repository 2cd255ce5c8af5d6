"""Text that breaks its lines where Chinese and English both expect it; rich breaks at spaces, then anywhere.

Chinese may break between any two characters, but no line begins with 。or ends with （; Latin words and numbers stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.style import Style
from rich.text import Text

OPENING, CLOSING, CHINESE = "（“", "，。；：、）”", "\u2e80-\u9fff"
UNIT = re.compile(rf"[{OPENING}]*(?:[^\s{OPENING}{CLOSING}{CHINESE}]+|(?![{CLOSING}])[{CHINESE}])?[{CLOSING}]*\s*")


def lines(text: str, width: int) -> Iterator[str]:
    """`text` in lines of at most `width` cells; a longer word has a line of its own."""
    line = ""
    for unit in filter(None, UNIT.findall(text)):
        if line and cell_len((line + unit).rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += unit
    yield line.rstrip()


class Wrapped:
    """The same for rich: a cell of a table, or a line of the page."""

    def __init__(self, text: str, style: str = "") -> None:
        self.text, self.style = text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wrapped = "\n".join(lines(self.text, options.max_width))
        yield Text(wrapped, style=Style.parse(self.style), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max((cell_len(unit.rstrip()) for unit in UNIT.findall(self.text)), default=0)
        return Measurement(min(longest, options.max_width), min(cell_len(self.text), options.max_width))
