"""The CPU time of other processes during a measurement, from /proc/stat; unknown on systems without that file.

share = (busy time of all cores - our own) / (elapsed · cores)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

LIMIT = 0.05  # share of all cores; above it a round is disturbed
TICK = 0.4  # a reading covers at least this many seconds, because the kernel counts in hundredths

Reading = tuple[float, float, float]  # seconds: wall clock, busy over all cores, our own


def cpu_times() -> Reading | None:
    """The times, or None if the system does not report them."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
        user, nice, system, _idle, _wait, irq, soft = (int(word) for word in first[1:8])
    except (OSError, ValueError):
        return None
    return time.perf_counter(), (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK"), time.process_time()


class Contention:
    """Reports whether the CPU was undisturbed since the last reading."""

    def __init__(self, reader: Callable[[], Reading | None] = cpu_times, cores: int | None = None) -> None:
        self.reader, self.cores = reader, cores or os.cpu_count() or 1
        self.last = reader()

    @property
    def known(self) -> bool:
        return self.last is not None

    def undisturbed(self) -> bool:
        """Whether other processes stayed below the limit since the last call."""
        before, self.last = self.last, self.reader()
        if before is None or self.last is None:
            return True
        wall, busy, ours = (now - then for now, then in zip(self.last, before, strict=True))
        return wall <= 0 or (busy - ours) / (wall * self.cores) <= LIMIT
