"""A time budget turned into training steps.

    speed of every encoding ─► measurements ─► speed again ─► the largest number of steps that fits the time left

The speed is measured twice and the faster result counts, so that a short load on the machine does not halve the training.
A budget needs trials that run on this machine.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from posenc.lab.engines.workers import Job, Workers
from posenc.lab.experiment import Experiment, Trial

if TYPE_CHECKING:
    from posenc.lab.experiment.change import Then
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

CLOSING = 12.0  # seconds kept for starting the workers and writing the report
MARGIN = 1.1  # over the estimated time, where a budget is recommended
FEW_ROWS = 8  # rows that are scored to estimate the time of scoring

A_FEW_STEPS = 4  # steps that are measured of training on after a change

Speed = tuple[float, float]  # seconds of a training step; and of what more steps leave as it is: scoring, training on
Kind = tuple[str, str, bool, bool]  # task, encoding, whether it is an oracle, whether it trains on after a change


def planned_before(experiment: Experiment, manifest: Mapping[str, Any] | None) -> Experiment | None:
    """The experiment with the steps that an earlier sweep planned for it; None if there is no such plan."""
    if experiment.budget is None or manifest is None:
        return None
    kept = Experiment.model_validate(manifest["experiment"])
    factor = kept.tasks[0].training.steps // experiment.tasks[0].training.steps
    return kept if multiplied(experiment, factor) == kept else None


def plan(
    experiment: Experiment,
    workers: int,
    text: Corpus | None,
    hardware: Hardware,
    measure: Callable[[], object],
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> Experiment:
    """The experiment with as many steps as fit its budget, counted from this call.

    `note` is called where they are too few to converge.

    `measure` makes the other measurements. It is called between the two measurements of speed, and its time counts
    against the budget.
    """
    assert experiment.budget is not None
    begun = time.perf_counter()
    trials = [*experiment.tuning(), *experiment.trials()]
    count = min(workers, len(trials))
    say("the speed of each encoding")
    first = speeds(trials, count, text, hardware)
    measure()
    say("the speed of each encoding again")
    second = speeds(trials, count, text, hardware)
    fastest = {kind: (min(a[0], second.get(kind, a)[0]), min(a[1], second.get(kind, a)[1])) for kind, a in first.items()}
    spent = time.perf_counter() - begun + CLOSING
    planned = multiplied(experiment, largest_factor(trials, fastest, count, experiment.budget - spent))
    if line := too_short(planned, lambda enough: spent + time_of(enough, fastest, count)):
        note(line)
    return planned


def too_short(planned: Experiment, seconds_of: Callable[[list[Trial]], float]) -> str | None:
    """A line if the steps are fewer than what convergence takes, with the budget that would be enough; otherwise None.

    `seconds_of` is the time that trials take in all.
    """
    short = [plan for plan in planned.tasks if plan.enough_steps and plan.training.steps < plan.enough_steps]
    if not short:
        return None
    lacking = ", ".join(f"{plan.task.name} {plan.training.steps:,} of {plan.enough_steps:,} steps" for plan in short)
    plans = [
        plan.model_copy(update={"training": plan.training.model_copy(update={"steps": plan.enough_steps})})
        if plan in short
        else plan
        for plan in planned.tasks
    ]
    enough = planned.model_copy(update={"tasks": tuple(plans)})
    minutes = math.ceil(MARGIN * seconds_of([*enough.tuning(), *enough.trials()]) / 60)
    return (
        f"this budget is too short to converge ({lacking}), so encodings may not be ranked; --budget {minutes}m is enough"
    )


def time_of(trials: list[Trial], speeds: Mapping[Kind, Speed], workers: int) -> float:
    """Seconds that the trials take; a trial without a speed counts as zero."""
    each = [(trial.training.steps, *speeds[kind_of(trial)]) for trial in trials if kind_of(trial) in speeds]
    return makespan([steps * step + fixed for steps, step, fixed in each], workers)


def multiplied(experiment: Experiment, factor: int) -> Experiment:
    """The experiment with `factor` times the steps in every task."""
    tasks = tuple(
        plan.model_copy(update={"training": plan.training.model_copy(update={"steps": factor * plan.training.steps})})
        for plan in experiment.tasks
    )
    return experiment.model_copy(update={"tasks": tasks})


def speeds(trials: list[Trial], workers: int, text: Corpus | None, hardware: Hardware) -> dict[Kind, Speed]:
    """The speed of each kind of trial, measured with as many workers as the sweep uses. Kinds that fail are left out."""
    kinds = {kind_of(trial): trial for trial in trials}
    result, names = dict[Kind, Speed](), list(kinds)
    with Workers(workers, (text, hardware)) as running:
        for event in running.run([Job(speed, (trial,)) for trial in kinds.values()]):
            if event.value is not None:
                result[names[event.number]] = event.value
    return result


def speed(shared: tuple[Corpus | None, Hardware], trial: Trial, report: Callable[[float], None]) -> Speed:
    """The speed of one trial, called in a worker: median time of a few training steps, and estimated time of the rest."""
    from posenc.lab.trial.cost import MANY_STEPS
    from posenc.lab.trial.training import Run

    text, hardware = shared
    steps, times, begun = Run(trial.with_steps(MANY_STEPS), text, hardware).losses(), list[float](), time.perf_counter()
    while len(times) < 8 or (time.perf_counter() - begun < 0.4 and len(times) < 60):
        start = time.perf_counter()
        next(steps)
        times.append(time.perf_counter() - start)
    score(trial, 1, text, hardware)  # warms up
    seconds, rows = score(trial, FEW_ROWS, text, hardware)
    all_rows = len(trial.task.scored(trial.task.length, text).tokens)
    training_on = [after(trial, then, text, hardware) for then in trial.then]
    return statistics.median(times[3:]), (1 + len(trial.then)) * seconds * all_rows / rows + sum(training_on)


def after(trial: Trial, then: Then, text: Corpus | None, hardware: Hardware) -> float:
    """Seconds to train on after a change, by the median time of a few steps."""
    from posenc.lab.trial.training import Run

    losses, times = Run(trial, text, hardware).losses_after(then)[1], list[float]()
    for _ in range(min(A_FEW_STEPS, then.steps)):
        begun = time.perf_counter()
        next(losses)
        times.append(time.perf_counter() - begun)
    return then.steps * statistics.median(times)


def score(trial: Trial, rows: int, text: Corpus | None, hardware: Hardware) -> tuple[float, int]:
    """Seconds to score about `rows` rows at every length, and the number of rows scored."""
    from posenc.lab.trial.training import Run

    few = trial.model_copy(update={"task": trial.task.model_copy(update={"held_out": rows}), "then": ()})
    run = Run(few, text, hardware)
    begun = time.perf_counter()
    run.score()
    return time.perf_counter() - begun, len(few.task.scored(few.task.length, text).tokens)


def kind_of(trial: Trial) -> Kind:
    return trial.task.name, trial.encoding, trial.oracle, bool(trial.then)


def largest_factor(trials: list[Trial], speeds: Mapping[Kind, Speed], workers: int, seconds: float) -> int:
    """The largest multiple of the steps with which all trials end within `seconds`, at least 1, by bisection.

    A trial without a speed failed when it was measured and will fail immediately, so it counts as zero seconds.
    """
    each = [(trial.training.steps, *speeds[kind_of(trial)]) for trial in trials if kind_of(trial) in speeds]
    if not each:
        return 1
    low, high = 1, 10**7
    while high - low > 1:
        middle = (low + high) // 2
        fits = makespan([middle * steps * step + fixed for steps, step, fixed in each], workers) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return low


def makespan(seconds: list[float], workers: int) -> float:
    """The time at which the last trial ends if each trial, the longest first, goes to the next free worker."""
    free = [0.0] * workers
    for trial_seconds in sorted(seconds, reverse=True):
        free[free.index(min(free))] += trial_seconds
    return max(free)
