"""Runs trials one after another, each shared by all processes that torchrun has started.

first process     claims ─► sends it    ─► runs ─► all exchange results ─► writes the record
the others                  receive it  ─► run  ─► all exchange results
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.engines.engine import Context, Event, finish, line

if TYPE_CHECKING:
    from posenc.lab.engines.engine import Train
    from posenc.lab.experiment import Trial
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

A_WEEK = datetime.timedelta(days=7)  # the others wait while the first one waits for other sweeps


def started() -> bool:
    """Whether this process is one of several started by torchrun."""
    return int(os.environ.get("WORLD_SIZE", 1)) > 1


class Together:
    """The engine of the first process; the other processes call `serve`."""

    workers = 1

    def __init__(self) -> None:
        self._met = self._others_wait = False

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        self._meet()
        for number, trial in enumerate(trials):
            if context.reserve(number):
                _say(("run", trial, context.text and context.text.sha256))
                self._others_wait = False
                value, failure = _run(trial, context.text, context.hardware, context.train)
                self._others_wait = True
                yield Event(number, 1.0, value=value, failure=failure)

    def close(self) -> None:
        """Tells the other processes to stop; not after an error in the middle of a trial, when torchrun ends them."""
        if not self._met:
            self._meet()
        if self._others_wait:
            _say(("end", None, None))
            _leave()

    def _meet(self) -> None:
        _meet()
        self._met = self._others_wait = True


def serve(text: Corpus | None, hardware: Hardware, train: Train | None) -> None:
    """Runs trials with the first process until it ends. Called by every other process.

    Raises ValueError if this process has another text than the first.
    """
    _meet()
    while True:
        word, trial, sha256 = _say(None)
        if word == "end":
            _leave()
            return
        if sha256 != (text and text.sha256):
            raise ValueError(f"--text: this process reads another text than the first one: {text and text.sha256}")
        _run(trial, text, hardware, train)


def _leave() -> None:
    """Ends the threads of gloo before Python does: one that still runs at exit aborts its process, and torchrun fails."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _run(trial: Trial, text: Corpus | None, hardware: Hardware, train: Train | None) -> tuple[bytes | None, str | None]:
    """Returns the first process's result, or its error. If another process fails, the rest stop at the time limit."""
    import torch.distributed as dist

    value, failure = None, None
    try:
        value = finish(trial, text, hardware, train, lambda share: None)
    except Exception as error:
        failure = line(error)
    failures: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(failures, failure)
    return value, next((failure for failure in failures if failure is not None), None)


def _say(message: Any) -> Any:
    """Sends the first process's message to every process and returns it."""
    import torch.distributed as dist

    box = [message]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def _meet() -> None:
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=A_WEEK)
