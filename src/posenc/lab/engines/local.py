"""Runs trials in processes of this machine, one thread and one trial each. On CUDA, devices are assigned in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.engines.engine import Context, Event, finish
from posenc.lab.engines.workers import Job, Workers, cores

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial

Shared = tuple[Any, ...]


class Local:
    """Runs `workers` trials at a time; None: one for each core, or for each device."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"--workers: expected at least 1, got {workers}")
        self._asked = workers

    @property
    def workers(self) -> int:
        return self._asked or cores()

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        shared = (context.text, context.hardware, context.train)
        devices = visible_devices() if context.hardware.device.startswith("cuda") else []
        count = self._asked or len(devices) or cores()
        environments = [{"CUDA_VISIBLE_DEVICES": device} for device in devices]
        with Workers(min(count, len(trials)), shared, environments) as workers:
            yield from workers.run([Job(_trial, (trial,)) for trial in trials], context.reserve, context.until)

    def close(self) -> None:
        pass


def _trial(shared: Shared, trial: Trial, report: Callable[[float], None]) -> bytes:
    text, hardware, train = shared
    return finish(trial, text, hardware, train, report)


def visible_devices() -> list[str]:
    """Names of the CUDA devices that this process may use, found without allocating memory on them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    import torch

    return [str(n) for n in range(torch.cuda.device_count())]
