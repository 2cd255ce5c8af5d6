"""Names in a few lines; those that have no room are counted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from posenc.terminal.wrapped import lines


def shortened(names: Sequence[str], width: int, rows: int) -> str:
    """As many of `names`, one at least, as fit into `rows` lines of `width` cells; then "… +12" for 12 more."""
    wrapped: list[str] = []
    for shown in range(len(names), 0, -1):
        more = [f"…\N{NO-BREAK SPACE}+{len(names) - shown}"] if shown < len(names) else []
        wrapped = list(lines(", ".join([*names[:shown], *more]), width))
        if len(wrapped) <= rows:
            break
    return "\n".join(wrapped).replace("\N{NO-BREAK SPACE}", " ")


class Shortened:
    """The same for rich: a cell of a table."""

    def __init__(self, names: Sequence[str], rows: int) -> None:
        self.names, self.rows = names, rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(shortened(self.names, options.max_width, self.rows), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(map(cell_len, self.names))
        return Measurement(min(longest, options.max_width), min(cell_len(", ".join(self.names)), options.max_width))
