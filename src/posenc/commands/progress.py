"""What long commands say while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WORDS = "[progress.percentage]{task.percentage:>3.0f} %[/]  {task.fields[left]}  {task.description}"
"""Beside a bar: share done, time left, stage."""


def in_lines(console: Console, command: str) -> Callable[[str, float, float], None]:
    """For where nobody watches: a line whenever the stage changes."""
    last = ""

    def line(what: str, so_far: float, left: float) -> None:
        nonlocal last
        if what != last:
            console.print(f"posenc {command}: {what}", soft_wrap=True, markup=False)
        last = what

    return line


def clock(seconds: float) -> str:
    """1:05 left; nothing below a second."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} left" if seconds >= 1 else ""
