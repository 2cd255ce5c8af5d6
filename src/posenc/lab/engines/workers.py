"""Single-threaded worker processes that end when their parent ends, for any reason.

    parent ── (number, function, arguments) ──► worker
    parent ◄── (number, "share" | "done" | "failed", …) ── worker

Each worker has its own pipe. A worker whose parent has ended finds the pipe closed at its next report and stops.
Small models train faster in parallel processes than on several threads. RoPE at the lab's size on two idle cores, bytes/s:
one thread 55 000, one process with two threads 76 000, two workers 104 000.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from posenc.terminal.output import print_any_text

REPORT_EVERY = 0.2  # seconds
MOST_WORKERS = 64

# By default glibc returns large blocks to the system and pays page faults for each new one: scoring CoPE took two to four
# times as long. A worker keeps the blocks.
MEMORY_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}


class Job(NamedTuple):
    """A call of `function(shared, *arguments, report)`. The function is importable; `report` takes the share done."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Event(NamedTuple):
    """A report of a job: a share from 0 to 1, and at the end a value or the line that says why there is none."""

    number: int
    share: float
    value: Any = None
    failure: str | None = None

    @property
    def finished(self) -> bool:
        return self.value is not None or self.failure is not None


class Workers:
    """`count` processes, each with its own copy of `shared`. Leaving the context ends them immediately."""

    def __init__(self, count: int, shared: Any, environments: Sequence[Mapping[str, str]] = ()) -> None:
        """Starts the workers. `environments` are assigned to them in turn, so that each has its own device."""
        self.count, self._shared, self._environments = count, shared, environments or ({},)
        self._processes: dict[Connection, SpawnProcess] = {}
        self._numbers: dict[Connection, int] = {}

    def __enter__(self) -> Workers:
        for number in range(self.count):
            self._start(number)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.terminate()
        for connection, process in self._processes.items():
            process.join()
            connection.close()
        self._processes.clear()
        self._numbers.clear()

    def run(
        self, jobs: Sequence[Job], take: Callable[[int], bool] = lambda number: True, until: float = math.inf
    ) -> Iterator[Event]:
        """Runs the jobs in order, each on the next free worker; yields reports and results as they arrive.

        A job that raises, or whose process dies, fails alone; the others go on. `take` is called just before a job
        starts; the job is skipped if it returns False. At the time `until` of the monotonic clock it ends, whatever runs.
        """
        waiting = list(enumerate(jobs))[::-1]
        running: dict[Connection, int] = {}
        while (waiting or running) and time.monotonic() < until:
            for connection in list(self._processes):
                while waiting and connection not in running and not take(waiting[-1][0]):
                    waiting.pop()
                if waiting and connection not in running:
                    try:
                        connection.send(waiting[-1])
                    except (BrokenPipeError, ConnectionResetError):  # it died while idle; its replacement gets the job
                        self._replace(connection)
                    else:
                        running[connection] = waiting.pop()[0]
            patience = None if until == math.inf else max(until - time.monotonic(), 0.0)
            for ready in wait(list(running), patience) if running else ():  # no worker runs if no job was taken
                assert isinstance(ready, Connection)
                try:
                    event: Event = ready.recv()
                except (EOFError, ConnectionResetError):
                    event = Event(running[ready], 1.0, failure=f"its process ended: {self._replace(ready)}")
                if event.finished:
                    del running[ready]
                yield event

    def _start(self, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._shared), daemon=True)
        environment = self._environments[number % len(self._environments)]
        with _deaf_to_interrupts(), _environment(MEMORY_KEPT), _environment(environment, over=True):
            process.start()
        theirs.close()
        self._processes[ours], self._numbers[ours] = process, number

    def _replace(self, connection: Connection) -> str:
        process = self._processes.pop(connection)
        process.join()
        connection.close()
        self._start(self._numbers.pop(connection))
        code = process.exitcode or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C, which reaches the whole process group, in processes started here; the parent gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str], over: bool = False) -> Iterator[None]:
    """Sets environment variables for processes started here. Values set by the user stay, unless `over`."""
    before = {name: os.environ.get(name) for name in wanted if over or name not in os.environ}
    os.environ.update({name: wanted[name] for name in before})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cores() -> int:
    """The number of cores this process may use, by its affinity and by the quota of its control group, if there is one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        count = min(count, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass  # no control group, or "max"
    return max(1, min(count, MOST_WORKERS))


def _serve(connection: Connection, shared: Any) -> None:
    import torch

    print_any_text()  # of a user's encoding, too
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for systems where it could not be blocked at the start
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            number, job = connection.recv()
            connection.send(_run(connection, number, job, shared))


def _run(connection: Connection, number: int, job: Job, shared: Any) -> Event:
    last = time.monotonic()

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            connection.send(Event(number, share))

    try:
        return Event(number, 1.0, value=job.function(shared, *job.arguments, report))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        return Event(number, 1.0, failure=f"{type(error).__name__}: {error}".splitlines()[0])
