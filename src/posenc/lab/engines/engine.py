"""What every engine is, what it is given, and how it runs one trial."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from posenc.lab.run.workers import Event as Event

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial
    from posenc.lab.experiment.corpus import Corpus
    from posenc.lab.records.record import Record
    from posenc.lab.trial.training import Hardware

    Train = Callable[[Trial, Corpus | None, Hardware, Callable[[float], None]], Record | None]


MUST_AGREE = ("fingerprint", "torch", "device")  # on all machines of a sweep


@dataclass(frozen=True)
class Context:
    """What all trials of a sweep share. `claim` says whether the trial of that number is this sweep's to run."""

    text: Corpus | None
    hardware: Hardware
    claim: Callable[[int], bool]
    provenance: Sequence[Mapping[str, str]]  # of each trial where the sweep runs; a process elsewhere must have the same
    folder: Path
    train: Train | None = None  # `posenc.lab.trial.training.run_trial` where it is None, imported where the trial runs


class Engine(Protocol):
    @property
    def workers(self) -> int:
        """How many trials run at a time."""

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        """Shares and ends as they come; a value is the bytes of the record's file. A trial that breaks breaks alone."""

    def close(self) -> None:
        """Ends what `run` has left standing for the next time."""


def finish(
    trial: Trial, text: Corpus | None, hardware: Hardware, train: Train | None, report: Callable[[float], None]
) -> bytes | None:
    """Runs one trial here; None on every process but the first of several that share it."""
    if train is None:
        from posenc.lab.trial.training import run_trial

        train = run_trial
    record = train(trial, text, hardware, report)
    return None if record is None else record.to_parquet()


def finish_elsewhere(
    trial: Trial, text: Corpus | None, hardware: Hardware, train: Train | None, expected: Mapping[str, str]
) -> bytes | None:
    """The same on another machine, on one thread. Raises RuntimeError for other code, another torch or another device."""
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
    """What went wrong, on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
