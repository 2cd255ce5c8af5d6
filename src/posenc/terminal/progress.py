"""Progress messages of long commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WORDS = "[progress.percentage]{task.percentage:>3.0f} %[/]  {task.fields[left]}  {task.description}"
"""Text of a progress bar: share done, time left, stage."""


def in_lines(console: Console, command: str) -> Callable[[str, float, float], None]:
    """Progress without a terminal: one line whenever the stage changes."""
    last = ""

    def line(what: str, so_far: float, left: float) -> None:
        nonlocal last
        if what != last:
            console.print(f"posenc {command}: {what}", soft_wrap=True, markup=False)
        last = what

    return line


def clock(seconds: float) -> str:
    """Remaining time, such as `1:05 left`; empty below one second."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} left" if seconds >= 1 else ""
