"""A time budget turned into training steps: a deadline by the clock, from the start of the command.

    speed of the encodings ─► what fits ─► other measurements ─► training, which ends at its time, whatever is left

On a quiet machine measuring takes at most a tenth of the budget. Where too few steps would fit for a comparison, seeds are
left out first, then encodings, the slowest first, then lengths, the longest first; where that is not enough, the budget is
refused before training, with one that is enough.
A budget needs trials that run on this machine.
"""

from __future__ import annotations

import math
import shlex
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from posenc.lab.engines.workers import Job, Workers
from posenc.lab.experiment import Experiment, Trial

if TYPE_CHECKING:
    from posenc.lab.experiment.change import Then
    from posenc.lab.tasks.task import Task
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

STARTING, CLOSING = 6.0, 6.0  # seconds of a quiet machine, kept for starting the workers, and for writing the report
MARGIN = 1.1  # of the estimated time: what a plan leaves free, and what is added where a budget is recommended
MEASURING = 0.1  # of a budget, at most
BUSY = 0.8  # share of a processor; a machine that gives a training step less is said to be busy
FEW_ROWS = 8  # rows that are scored to estimate the time of scoring
SLOW_ROW = 3.0  # seconds of the first one, above which it is the estimate

A_FEW_STEPS = 4  # steps that are measured of training on after a change

Kind = tuple[str, str, bool, bool]  # task, encoding, whether it is an oracle, whether it trains on after a change


class Plan(NamedTuple):
    """What fits a budget. until: the time of the monotonic clock after which no trial is to be training."""

    experiment: Experiment
    until: float


class Speed(NamedTuple):
    """Seconds of a training step, of scoring for each token of a row (`scored`), and of training on after changes."""

    step: float
    scoring: float
    training_on: float

    def of(self, trial: Trial) -> float:
        """Seconds that a trial takes."""
        return trial.training.steps * self.step + scored(trial.task) * self.scoring + self.training_on


class Timed(NamedTuple):
    """The speed of one trial, and the share of a processor that its training steps were given."""

    speed: Speed
    share: float


def planned_before(experiment: Experiment, manifest: Mapping[str, Any] | None) -> Experiment | None:
    """The experiment with the steps that an earlier sweep planned for it; None if there is no such plan."""
    if experiment.budget is None or manifest is None:
        return None
    kept = Experiment.model_validate(manifest["experiment"])
    factor = kept.tasks[0].training.steps // experiment.tasks[0].training.steps
    fewer = with_encodings(experiment, words_of(kept))
    less = [*fewer_seeds(experiment), fewer, *fewer_lengths(fewer)]
    return kept if any(multiplied(one, factor) == kept for one in less) else None


def plan(
    experiment: Experiment,
    workers: int,
    text: Corpus | None,
    hardware: Hardware,
    deadline: float,
    reserved: Callable[[Experiment], float],
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> Plan:
    """As much of the experiment, with as many steps, as fits before the deadline, a time of the monotonic clock.

    `reserved` are seconds of a quiet machine for other measurements. `note` is called where the machine is busy, where
    something is left out, and where steps are too few to converge. Raises ValueError where nothing fits.
    """
    budget = experiment.budget
    assert budget is not None
    begun = time.monotonic()
    trials = [*experiment.tuning(), *experiment.trials()]
    count = min(workers, len(trials))
    say("the speed of each encoding")
    known, share = speeds(trials, count, text, hardware, begun + MEASURING * budget - reserved(experiment))
    if share < BUSY:
        note(f"this machine is busy: training gets {share:.0%} of a processor, so fewer steps fit")
    until = deadline - CLOSING / share
    left = until - time.monotonic() - STARTING / share

    def seconds_of(one: Experiment) -> float:
        trials = time_of([*one.tuning(), *one.trials()], known, count)
        return budget - left + reserved(one) / share + MARGIN * trials

    less = list(smaller(experiment, known))
    fit = (fitting(one, known, count, left - reserved(one) / share) for one in less)
    if (planned := next(filter(None, fit), None)) is None:
        raise ValueError(refusal(experiment, less[-1], seconds_of))
    for line in (dropped(experiment, planned), too_short(planned, seconds_of)):
        if line:
            note(line)
    return Plan(planned, until)


def smaller(experiment: Experiment, speeds: Mapping[Kind, Speed]) -> Iterator[Experiment]:
    """The experiment, then with ever fewer seeds, then with one seed and ever fewer encodings, then lengths."""
    yield from fewer_seeds(experiment)
    took = dict.fromkeys(words_of(experiment), 0.0)
    for trial in experiment.trials():
        took[trial.encoding] = took.get(trial.encoding, 0.0) + time_of([trial], speeds, 1)
    words = sorted(words_of(experiment), key=lambda word: took[word])
    for count in range(len(words) - 1, 1, -1):
        yield with_encodings(experiment, words[:count])
    yield from fewer_lengths(with_encodings(experiment, words[:2]))


def fewer_seeds(experiment: Experiment) -> Iterator[Experiment]:
    yield experiment
    for seeds in range(experiment.seeds - 1, 0, -1):
        fewer = {word: min(seeds, count) for word, count in experiment.fewer_seeds.items()}
        yield experiment.model_copy(update={"seeds": seeds, "fewer_seeds": fewer})


def words_of(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(word for plan in experiment.tasks for word in experiment.of(plan)))


def with_encodings(experiment: Experiment, words: list[str]) -> Experiment:
    """The experiment with one seed and these of its encodings."""

    def kept(encodings: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if encodings is None else tuple(word for word in encodings if word in words)

    tasks = tuple(plan.model_copy(update={"encodings": kept(plan.encodings)}) for plan in experiment.tasks)
    sources = {word: text for word, text in experiment.sources.items() if word in words}
    changes = {"encodings": kept(experiment.encodings), "tasks": tasks, "sources": sources, "seeds": 1, "fewer_seeds": {}}
    return experiment.model_copy(update=changes)


def fewer_lengths(experiment: Experiment) -> Iterator[Experiment]:
    """The experiment with ever fewer of the lengths beyond the trained one, the longest out first; one stays."""
    most = max(len(longer(plan.task)) for plan in experiment.tasks)
    for count in range(most - 1, 0, -1):
        plans = []
        for plan in experiment.tasks:
            left_out = longer(plan.task)[count:]
            lengths = tuple(length for length in plan.task.lengths if length not in left_out)
            plans.append(plan.model_copy(update={"task": plan.task.model_copy(update={"lengths": lengths})}))
        yield experiment.model_copy(update={"tasks": tuple(plans)})


def longer(task: Task) -> list[int]:
    return [length for length in task.lengths if length > task.length]


def scored(task: Task) -> int:
    """The tokens of a row at all its lengths. Each length takes a share of the time as of these, long ones more."""
    return sum(map(task.tokens, task.lengths))


def fitting(experiment: Experiment, speeds: Mapping[Kind, Speed], workers: int, seconds: float) -> Experiment | None:
    """The experiment with as many steps as fit; None if those are fewer than a comparison needs."""
    trials = [*experiment.tuning(), *experiment.trials()]
    planned = multiplied(experiment, largest_factor(trials, speeds, workers, seconds / MARGIN))
    if MARGIN * time_of([*planned.tuning(), *planned.trials()], speeds, workers) > seconds:
        return None
    few = any(plan.least_steps and plan.training.steps < plan.least_steps for plan in planned.tasks)
    return None if few else planned


def dropped(experiment: Experiment, planned: Experiment) -> str:
    """A line that names what was left out of the experiment; empty if nothing was."""
    lost = [word for word in words_of(experiment) if word not in words_of(planned)]
    parts = [f"{experiment.seeds - planned.seeds} of {experiment.seeds} seeds"] * (planned.seeds < experiment.seeds)
    parts += [f"the encodings {', '.join(lost)}"] * bool(lost)
    for before, after in zip(experiment.tasks, planned.tasks, strict=True):
        gone = [str(length) for length in before.task.lengths if length not in after.task.lengths]
        parts += [f"the lengths {', '.join(gone)} of {after.task.name}"] * bool(gone)
    return f"left out to fit {experiment.budget:g} s: {'; '.join(parts)}" if parts else ""


def repeated(command: str, experiment: Experiment, planned: Experiment) -> str:
    """The command of `posenc compare` with the encodings that were not left out; any other command as it is.

    It scores lengths that were left out too, and trains seeds that were.
    """
    words = shlex.split(command)
    if words_of(planned) == words_of(experiment) or words[:2] != ["posenc", "compare"]:
        return command
    if "--encodings" in words:
        at = words.index("--encodings")
        del words[at : at + 2]
    return shlex.join([*words[:2], "--encodings", ",".join(words_of(planned)), *words[2:]]).replace("'{steps}'", "{steps}")


def refusal(experiment: Experiment, last: Experiment, seconds_of: Callable[[Experiment], float]) -> str:
    """The line that says which budget would do, for the least and for all of the experiment."""

    def needed(one: Experiment) -> str:
        plans = [plan.training.model_copy(update={"steps": plan.least_steps or plan.training.steps}) for plan in one.tasks]
        tasks = (plan.model_copy(update={"training": each}) for plan, each in zip(one.tasks, plans, strict=True))
        least = one.model_copy(update={"tasks": tuple(tasks)})
        return f"{math.ceil(seconds_of(least))}s"

    few = f"{len(words_of(last))} encodings" if len(words_of(last)) > 1 else "one encoding"
    ends = [one.tasks[0].task.lengths[-1] for one in (last, experiment)]
    up_to = f" up to length {ends[0]}" if ends[0] < ends[1] else ""
    return (
        f"--budget: {experiment.budget:g} s is too short for a comparison on this machine; one seed of {few}{up_to} needs "
        f"about {needed(last)}, all of it {needed(experiment)}"
    )


def too_short(planned: Experiment, seconds_of: Callable[[Experiment], float]) -> str | None:
    """A line if the steps are fewer than what convergence takes, with the budget that would be enough; otherwise None."""
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
    minutes = math.ceil(seconds_of(enough) / 60)
    return (
        f"this budget is too short to converge ({lacking}), so encodings may not be ranked; --budget {minutes}m is enough"
    )


def time_of(trials: list[Trial], speeds: Mapping[Kind, Speed], workers: int) -> float:
    """Seconds that the trials take; a trial without a speed counts as zero."""
    return makespan([speeds[kind_of(trial)].of(trial) for trial in trials if kind_of(trial) in speeds], workers)


def multiplied(experiment: Experiment, factor: int) -> Experiment:
    """The experiment with `factor` times the steps in every task."""
    tasks = tuple(
        plan.model_copy(update={"training": plan.training.model_copy(update={"steps": factor * plan.training.steps})})
        for plan in experiment.tasks
    )
    return experiment.model_copy(update={"tasks": tasks})


def speeds(
    trials: list[Trial], workers: int, text: Corpus | None, hardware: Hardware, until: float
) -> tuple[dict[Kind, Speed], float]:
    """The speed of each kind of trial, with as many workers as the sweep uses, and their median share of a processor.

    A kind that fails is left out. Once the time is over and one is known, the others count as slow as the slowest.
    """
    kinds = {kind_of(trial): trial for trial in trials}
    known, shares, failed, names = dict[Kind, Speed](), list[float](), set[Kind](), list(kinds)
    with Workers(workers, (text, hardware)) as running:
        for event in running.run([Job(speed, (trial,)) for trial in kinds.values()]):
            if event.value is not None:
                known[names[event.number]] = event.value.speed
                shares.append(event.value.share)
            elif event.finished:
                failed.add(names[event.number])
            if known and time.monotonic() > until:
                break
    if not known:
        return {}, 1.0
    slowest = Speed(*map(max, zip(*known.values(), strict=True)))
    return {kind: known.get(kind, slowest) for kind in kinds if kind not in failed}, min(statistics.median(shares), 1.0)


def speed(shared: tuple[Corpus | None, Hardware], trial: Trial, report: Callable[[float], None]) -> Timed:
    """The speed of one trial, called in a worker: median time of a few training steps, and estimated time of the rest."""
    from posenc.lab.trial.cost import MANY_STEPS
    from posenc.lab.trial.training import Run

    text, hardware = shared
    steps, times = Run(trial.with_steps(MANY_STEPS), text, hardware).losses(), list[float]()
    begun, processor = time.perf_counter(), time.process_time()
    while len(times) < 8 or (time.perf_counter() - begun < 0.4 and len(times) < 60):
        start = time.perf_counter()
        next(steps)
        times.append(time.perf_counter() - start)
    share = (time.process_time() - processor) / (time.perf_counter() - begun)
    seconds, rows = score(trial, 1, text, hardware)  # warms up
    if seconds < SLOW_ROW:
        seconds, rows = score(trial, FEW_ROWS, text, hardware)
    all_rows = len(trial.task.scored(trial.task.length, text).tokens)
    training_on = [after(trial, then, text, hardware) for then in trial.then]
    scoring = (1 + len(trial.then)) * seconds * all_rows / rows / scored(trial.task)
    return Timed(Speed(statistics.median(times[3:]), scoring, sum(training_on)), share)


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
    known = [trial for trial in trials if kind_of(trial) in speeds]
    if not known:
        return 1
    low, high = 1, 10**7
    while high - low > 1:
        middle = (low + high) // 2
        longer = [trial.with_steps(middle * trial.training.steps) for trial in known]
        fits = time_of(longer, speeds, workers) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return low


def makespan(seconds: list[float], workers: int) -> float:
    """The time at which the last trial ends if each trial, the longest first, goes to the next free worker."""
    free = [0.0] * workers
    for trial_seconds in sorted(seconds, reverse=True):
        free[free.index(min(free))] += trial_seconds
    return max(free)
