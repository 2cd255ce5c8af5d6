"""Starts the workers one after the other and collects their results. Needs no torch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.bars import verdicts
from bench.plan import ALLOCATORS, BENCHMARKS, ROOT, cases_of, memory_cases
from posenc.kernels import machine

Progress = Callable[[str, float, float], None]
"""(what runs, share of the whole, seconds left)"""


@dataclass(frozen=True)
class Request:
    """`threads` are measured one after the other with the large allocator setting; the stock one with the first of them."""

    benchmarks: tuple[str, ...] = BENCHMARKS
    device: str = "cpu"
    peers: dict[str, str] = field(default_factory=dict)
    threads: tuple[int, ...] = (1,)
    seconds: float = 1.0
    most: int | None = None
    sweep: bool = False
    tiny: bool = False
    memory: bool = True


@dataclass(frozen=True)
class Job:
    benchmark: str
    kind: str
    allocator: str
    threads: int
    cases: tuple[dict[str, Any], ...]


def jobs(request: Request) -> list[Job]:
    planned = []
    settings = [("large", threads) for threads in request.threads] + [("stock", request.threads[0])]
    if request.device != "cpu":
        settings = [("stock", request.threads[0])]
    for benchmark in request.benchmarks:
        for allocator, threads in settings:
            cases = cases_of(benchmark, tiny=request.tiny, sweep=request.sweep and allocator == settings[0][0])
            planned.append(Job(benchmark, "time", allocator, threads, tuple(case.as_json() for case in cases)))
        if request.memory and request.device == "cpu" and (cases := memory_cases(benchmark, tiny=request.tiny)):
            most = max(request.threads)
            planned.append(Job(benchmark, "memory", "stock", most, tuple(case.as_json() for case in cases)))
    return planned


def run(request: Request, progress: Progress, into: dict[str, Any]) -> dict[str, Any]:
    """Fills `into` as cases finish, so that an interruption keeps them. `failures` names workers that broke."""
    into |= {
        "posenc": "bench",
        "machine": machine.facts(),
        "peers": request.peers,
        "seconds": request.seconds,
        "device": request.device,
        "complete": False,
        "results": [],
        "failures": [],
        "bars": [],
    }
    planned = jobs(request)
    whole, done, begun = sum(len(job.cases) for job in planned), 0, time.monotonic()
    for job in planned:
        before = done
        for event in events(job, request):
            if event["event"] == "begun":
                title, share = f"{event['title']} · {job.threads} thread{'s' * (job.threads > 1)}, {job.allocator}", 0.0
            elif event["event"] == "progress":
                share = event["share"]
            elif event["event"] == "result":
                into["results"].append(event["result"])
                into["bars"] = [] if request.tiny else verdicts(into["results"])
                done, share = done + 1, 0.0
            else:
                into["failures"].append(f"{job.benchmark}, {job.allocator}, {job.threads} threads: {event['why']}")
                done, title, share = before + len(job.cases), job.benchmark, 0.0
            so_far = min((done + share) / whole, 1.0)
            elapsed = time.monotonic() - begun
            progress(title, so_far, elapsed / so_far - elapsed if so_far > 0 else 0.0)
    into["complete"] = not into["failures"]
    return into


def events(job: Job, request: Request) -> Iterator[dict[str, Any]]:
    """Yields the messages of one worker; ends the worker if the caller stops iterating."""
    message = {
        "kind": job.kind,
        "cases": job.cases,
        "device": request.device,
        "threads": job.threads,
        "allocator": job.allocator,
        "peers": request.peers,
        "seconds": request.seconds,
        "most": request.most,
    }
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        worker = subprocess.Popen(
            [sys.executable, "-m", "bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
            cwd=ROOT,
            env=environment(job),
            start_new_session=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps(message))
            worker.stdin.close()
            for line in worker.stdout:
                yield json.loads(line)
            if worker.wait():
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no word"])[-1]
                yield {"event": "broken", "why": f"exit code {worker.returncode}: {last[:300]}"}
        finally:
            _end(worker)


def environment(job: Job) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if name not in ALLOCATORS["large"]}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(job.threads))
    return {**usual, **ALLOCATORS[job.allocator], **threads}


def _end(worker: subprocess.Popen[str]) -> None:
    """Ends the worker and its child processes: compilers, and the processes of the memory benchmark."""
    if worker.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
