"""The interface of engines, their input, and the function that runs one trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from posenc.lab.engines.workers import Event as Event
from posenc.lab.records import surroundings

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial
    from posenc.lab.records.record import Record
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

    Train = Callable[[Trial, Corpus | None, Hardware, Callable[[float], None]], Record]


MUST_AGREE = ("fingerprint", "torch", "device")  # on all machines of a sweep


@dataclass(frozen=True)
class Context:
    """The data that all trials of a sweep share. `reserve(number)` is True if this sweep may run that trial."""

    text: Corpus | None
    hardware: Hardware
    reserve: Callable[[int], bool]
    provenance: Sequence[Mapping[str, str]]  # of each trial on the sweep's machine; other machines must agree
    folder: Path
    train: Train | None = None  # None: `posenc.lab.trial.training.run_trial`, imported in the process that runs the trial
    until: float = math.inf  # time of the monotonic clock at which trials of this machine end, whatever is left


class Engine(Protocol):
    @property
    def workers(self) -> int:
        """The number of trials that run at a time."""

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        """Yields events as they arrive; a value is the bytes of a record's file. A failed trial does not stop others."""

    def close(self) -> None:
        """Ends processes and connections that `run` keeps for reuse."""


def finish(
    trial: Trial, text: Corpus | None, hardware: Hardware, train: Train | None, report: Callable[[float], None]
) -> bytes:
    """Runs one trial here. Its record names this processor and what the kernels use of it."""
    if train is None:
        from posenc.lab.trial.training import run_trial

        train = run_trial
    try:
        record = train(trial, text, hardware, report)
    except SystemExit as end:  # of a user's encoding
        raise RuntimeError(f"it ends Python with sys.exit({end.code})") from None
    machine = {**record.about["machine"], **surroundings.here()}
    return replace(record, about={**record.about, "machine": machine}).to_parquet()


def finish_elsewhere(
    trial: Trial, text: Corpus | None, hardware: Hardware, train: Train | None, expected: Mapping[str, str]
) -> bytes:
    """Runs one trial on another machine, on one thread. Raises RuntimeError if its code, torch or device differs."""
    import torch

    from posenc.lab.records.provenance import provenance

    torch.set_num_threads(1)
    here = provenance(trial, hardware)
    if unlike := [name for name in MUST_AGREE if here[name] != expected[name]]:
        name = unlike[0]
        remedy = "set ATEN_CPU_CAPABILITY to the same everywhere" if name == "device" else "install the same everywhere"
        raise RuntimeError(f"{name}: this machine has {here[name]}, the sweep {expected[name]}; {remedy}")
    return finish(trial, text, hardware, train, lambda share: None)


def line(error: BaseException) -> str:
    """The error as one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
