"""What a measurement reads of its own process: the memory it holds, and times without garbage collection."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float
    count: int


def spread(values: Iterable[float]) -> Spread | None:
    """Median and quartiles; None for nothing."""
    ordered = sorted(values)
    if len(ordered) < 2:
        return Spread(ordered[0], ordered[0], ordered[0], 1) if ordered else None
    low, median, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return Spread(median, low, high, len(ordered))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def resident(field: str) -> int:
    """Resident bytes. VmRSS: now; VmHWM: the peak since it was reset. Raises OSError if the system does not report them."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def forget_peak() -> None:
    """Raises OSError if the system cannot."""
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:  # 5: the peak becomes what is resident now
        file.write("5")
