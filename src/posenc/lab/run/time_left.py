"""Estimates the time left of a sweep from the times of its trials so far.

expected seconds of a trial = its steps × seconds a step: mean of its task and encoding, else of its task, else of all
left                        = time left of all trials / workers, at least the time left of each running trial
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial

TELLS = 0.02  # share of a running trial that must be done before its time is used for estimates


class TimeLeft:
    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = workers, clock
        self._waiting: dict[str, Trial] = {}
        self._running: dict[str, tuple[float, float]] = {}  # start time, share done
        self._took: dict[tuple[str, ...], list[float]] = defaultdict(list)

    def waits(self, key: str, trial: Trial) -> None:
        self._waiting[key] = trial

    def runs(self, key: str, share: float) -> None:
        begun, _ = self._running.get(key, (self._clock(), 0.0))
        self._running[key] = begun, share

    def ends(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._running.pop(key, None)

    def took(self, trial: Trial, seconds: float) -> None:
        for kind in _kinds(trial):
            self._took[kind].append(seconds / trial.all_steps)

    def expected(self, trial: Trial) -> float:
        """Seconds that a trial will take by those that have ended; 0 while unknown."""
        a_step = _mean(self._took[kind] for kind in _kinds(trial) if self._took.get(kind))
        return 0.0 if a_step is None else a_step * trial.all_steps

    def left(self) -> float | None:
        """Seconds left; None while unknown."""
        running = {key: (self._clock() - begun, share) for key, (begun, share) in self._running.items()}
        took: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for key, (seconds, share) in running.items():
            for kind in _kinds(self._waiting[key]) if share > TELLS else ():
                took[kind].append(seconds / share / self._waiting[key].all_steps)
        took |= self._took
        remaining = []
        for key, trial in self._waiting.items():
            a_step = _mean(took[kind] for kind in _kinds(trial) if took.get(kind))
            if a_step is None:
                return None
            expected = a_step * trial.all_steps
            if key in running:
                seconds, share = running[key]
                expected = seconds / share - seconds if share > TELLS else max(expected - seconds, 0.0)
            remaining.append((key in running, expected))
        longest = max((seconds for now, seconds in remaining if now), default=0.0)
        return max(sum(seconds for _, seconds in remaining) / self._workers, longest)


def _kinds(trial: Trial) -> list[tuple[str, ...]]:
    """Keys for the mean, from the most specific to the most general."""
    return [(trial.task.name, trial.encoding), (trial.task.name,), ()]


def _mean(lists: Iterable[list[float]]) -> float | None:
    first = next(iter(lists), None)
    return None if first is None else sum(first) / len(first)
