"""A curve in one line of characters."""

from __future__ import annotations

from collections.abc import Iterable

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Iterable[float | None], low: float, high: float, width: int = 1) -> str:
    """`width` blocks for each value, from ▁ at `low` to █ at `high`; · where there is no value."""
    steps = (len(BLOCKS) - 1) / (high - low or 1.0)
    return "".join(width * ("·" if value is None else BLOCKS[round((value - low) * steps)]) for value in values)
