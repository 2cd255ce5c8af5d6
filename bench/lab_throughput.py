"""How many tokens a second the lab trains: one model after another on one thread, on all threads, and one a core.

    python bench/lab_throughput.py [--steps 60] [--rounds 5] [--encoding rope]

The three ways take turns; tokens trained over wall time, models already imported and warm; medians with the spread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from posenc.lab.engines.workers import Job, Workers, cores
from posenc.lab.experiment import Training, Trial, read_experiment
from posenc.lab.text import corpus
from posenc.lab.trial.training import run_trial


def train(shared: Any, threads: int, steps: int, encoding: str, _: Callable[[float], None]) -> int:
    """Trains the quick preset's language model for some steps and says how many tokens that were."""
    torch.set_num_threads(threads)
    experiment = read_experiment("quick")
    plan = experiment.tasks[0]
    task = plan.task.model_copy(update={"lengths": (plan.task.length,), "held_out": 1})
    training = Training(**{**plan.training.model_dump(), "steps": steps})
    record = run_trial(Trial(task=task, encoding=encoding, seed=0, size=experiment.size, training=training), shared)
    assert record is not None
    return int(record.about["trained_tokens"])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--steps", type=int, default=60)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--encoding", default="rope")
    options = asked.parse_args()
    text = corpus.read_corpus(None, 513)
    ways = {
        "one after another, one thread": (1, 1),
        "one after another, all threads": (1, cores()),
        "one a core, one thread each": (cores(), 1),
    }
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    with Workers(1, text) as single, Workers(cores(), text) as side_by_side:
        for turn, (way, (processes, threads)) in itertools.product(range(options.rounds + 1), ways.items()):
            workers = single if processes == 1 else side_by_side
            jobs = [Job(train, (threads, options.steps, options.encoding))] * cores()
            begun = time.perf_counter()
            events = [event for event in workers.run(jobs) if event.finished]
            if failures := [event.failure for event in events if event.failure]:
                raise RuntimeError(failures[0])
            if turn:  # the first warms up
                speeds[way].append(sum(event.value for event in events) / (time.perf_counter() - begun))
    medians = {way: statistics.median(measured) for way, measured in speeds.items()}
    for way, median in medians.items():
        print(f"{way:34} {median:9,.0f} tokens/s  {min(speeds[way]):,.0f} to {max(speeds[way]):,.0f}")
    one, all_threads, workers_speed = medians.values()
    print(f"one a core: {workers_speed / one:.2f} of one thread, {workers_speed / all_threads:.2f} of all threads")
    told = {"encoding": options.encoding, "cores": cores(), "torch": torch.__version__, "python": platform.python_version()}
    print(json.dumps({**told, "tokens_per_second": speeds}))


if __name__ == "__main__":
    main()
