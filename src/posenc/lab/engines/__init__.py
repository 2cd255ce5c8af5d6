"""Where trials run. An engine takes them in their order, claims each just before it starts it, and yields what comes of it.

    local     processes of this machine
    ray       tasks of a Ray cluster, run again elsewhere where a node is lost
    slurm     a job array
    together  all processes of torchrun on one trial after another

What an engine yields is numbered as its list of trials; a trial that is claimed elsewhere yields nothing.
"""

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


NAMES = ("local", "ray", "slurm")


@dataclass(frozen=True)
class Context:
    """What all trials of a sweep share. `claim` says whether the trial of that number is this sweep's to run."""

    text: Corpus | None
    hardware: Hardware
    claim: Callable[[int], bool]
    surroundings: Mapping[str, str]  # of the sweep; a process elsewhere must have the same
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
    """The same on another machine, on one thread. Raises RuntimeError where that would give other numbers."""
    import torch

    from posenc.lab.records.code import surroundings

    torch.set_num_threads(1)
    here = surroundings(hardware)
    if unlike := [name for name in expected if here[name] != expected[name]]:
        name = unlike[0]
        remedy = "set ATEN_CPU_CAPABILITY to the same everywhere" if name == "device" else "install the same everywhere"
        raise RuntimeError(f"{name}: this machine has {here[name]}, the sweep {expected[name]}; {remedy}")
    return finish(trial, text, hardware, train, lambda share: None)


def line(error: BaseException) -> str:
    """What went wrong, on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def named(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of that name; under torchrun "local" is all its processes together. `address` is a Ray cluster's.

    Raises ValueError for an unknown one, ModuleNotFoundError where the library that it needs is not installed.
    """
    from posenc.lab.engines.torchrun import Together, started

    if started():
        if name != "local":
            raise ValueError(f"--engine: under torchrun expected local, got {name!r}")
        return Together()
    if name == "local":
        from posenc.lab.engines.local import Local

        return Local(workers)
    if name == "ray":
        from posenc.lab.engines.ray_ import Ray

        return Ray(workers, address)
    if name == "slurm":
        from posenc.lab.engines.slurm import Slurm

        return Slurm(workers)
    raise ValueError(f"--engine: expected {', '.join(NAMES)}, got {name!r}")
