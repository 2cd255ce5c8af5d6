"""Runs all trials of an experiment. A trial with a record is not run again; a finished trial is recorded immediately.

    tuning trials ─► a learning rate for each task and encoding ─► trials ─► measurements ─► experiment.json

Several sweeps may share a folder. Each reserves a trial before it starts it, and at the end waits for the trials that
others have reserved. The reservation of a sweep that died is free again. A trial that fails is reported, does not stop the
sweep, and is tried again by the next sweep.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from posenc.lab.engines import LATE, NOT_INSTALLED, Context, Engine, Event
from posenc.lab.engines.local import Local
from posenc.lab.experiment import Choice, Experiment, Trial
from posenc.lab.records import learning_curve
from posenc.lab.records.fingerprint import fingerprint
from posenc.lab.records.mean_score import NO_SCORE, Order, order_of
from posenc.lab.records.provenance import provenance
from posenc.lab.records.results import FORMAT, Folder, Reservation, unpacked
from posenc.lab.records.written import MEASUREMENTS as MEASURED
from posenc.lab.run import budget
from posenc.lab.run.measurements import LOOK_AGAIN, measure, seconds_of
from posenc.lab.run.time_left import TimeLeft
from posenc.lab.text import corpus

if TYPE_CHECKING:
    from posenc.lab.engines import Train
    from posenc.lab.records.record import Record
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

Pair = tuple[str, str]  # task and encoding
What = Literal["found", "running", "done", "failed", "elsewhere", "note", "measuring"]


class Update(NamedTuple):
    """An event of a sweep, and the progress of the whole sweep.

    what    found, running, done, failed, elsewhere (another sweep runs it), note or measuring (`line` says what); `line` of
            a trial that is done says why its training diverged
    done    number of finished trials of `total`; `left` is in seconds, None while unknown
    """

    what: What
    trial: Trial | None
    share: float
    line: str | None
    done: int
    total: int
    left: float | None
    score: float | None = None  # of a trial that is done, at the trained length


class Problem(NamedTuple):
    trial: Trial
    line: str

    @property
    def not_installed(self) -> bool:
        """Whether the encoding needs a package that is not installed here."""
        return self.line.startswith(NOT_INSTALLED)


class Outcome(NamedTuple):
    """The result of a sweep. `ran` trials were run here; `reused` were finished before, or by another sweep meanwhile.

    failed    with the line that says why
    missing   not run, because the models that choose their learning rate failed
    diverged  with a record that says why the training stopped, such as a loss that became NaN; not run again
    others       files in the folder with other settings, another text or another version of the numerics
    other_code   reused trials made by other code (`records.fingerprint`)
    late         not begun, or stopped, because the budget was over
    """

    ran: int
    reused: int
    failed: tuple[Problem, ...]
    missing: tuple[Problem, ...]
    others: int
    seconds: float
    other_code: int = 0
    diverged: tuple[Problem, ...] = ()
    late: tuple[Problem, ...] = ()


Progress = Callable[[Update], None]


def sweep(
    experiment: Experiment,
    folder: Folder,
    engine: Engine,
    *,
    text: Path | None = None,
    hardware: Hardware | None = None,
    command: str = "",
    progress: Progress = lambda update: None,
    train: Train | None = None,
    begun: float | None = None,
) -> Outcome:
    """Runs the missing trials and returns the result. A budget counts from `begun` of the monotonic clock, or from now.

    Raises as `read_corpus` does, and results.Unwritable if the folder cannot be written; KeyboardInterrupt passes through.
    Trials finished by then are kept.
    """
    if hardware is None:
        from posenc.lab.trial.training import Hardware

        hardware = Hardware()
    begun = time.monotonic() if begun is None else begun
    texts = read_text(experiment, text)
    try:
        planned = with_steps(experiment, folder, engine, texts, hardware, progress, begun)
        command = budget.repeated(command, experiment, planned.experiment)
        return _Sweep(planned.experiment, folder, engine, texts, hardware, command, progress, train, planned.until).whole()
    finally:
        engine.close()


def with_steps(
    experiment: Experiment,
    folder: Folder,
    engine: Engine,
    text: Corpus | None,
    hardware: Hardware,
    progress: Progress,
    begun: float,
) -> budget.Plan:
    """Turns a budget into steps: the steps planned in this folder before, or newly planned ones.

    Raises ValueError for a budget with an engine whose trials run elsewhere, and as `budget.plan` does.
    """
    if experiment.budget is None:
        return budget.Plan(experiment, math.inf)
    if (before := budget.planned_before(experiment, folder.experiment())) is not None:
        return budget.Plan(before, begun + experiment.budget - budget.CLOSING)
    if not isinstance(engine, Local):
        raise ValueError(
            "budget: steps can be planned only for trials that run on this machine: use --engine local, "
            "or an experiment that has steps and no budget"
        )
    folder.prepare()

    def say(what: What, line: str) -> None:
        progress(Update(what, None, 0.0, line, 0, len(experiment.tuning()) + len(experiment.trials()), None))

    measuring, note = partial(say, "measuring"), partial(say, "note")
    deadline = begun + experiment.budget
    planned = budget.plan(experiment, engine.workers, text, hardware, deadline, seconds_of, measuring, note)
    measure(planned.experiment, folder, text, hardware, measuring, note)
    return planned


def read_text(experiment: Experiment, path: Path | None) -> Corpus | None:
    """The text; None if no task reads it."""
    rows = [plan.task.tokens(plan.task.lengths[-1]) for plan in experiment.tasks if plan.task.reads_text]
    return corpus.read_corpus(path, max(rows) + 1, experiment.text) if rows else None


class _Sweep:
    def __init__(
        self,
        experiment: Experiment,
        folder: Folder,
        engine: Engine,
        text: Corpus | None,
        hardware: Hardware,
        command: str,
        progress: Progress,
        train: Train | None,
        until: float,
    ) -> None:
        self.until, self.late = until, dict[str, Problem]()
        self.begun = time.monotonic()
        self.experiment, self.folder, self.engine, self.text, self.hardware = experiment, folder, engine, text, hardware
        self.command, self.progress, self.train = command, progress, train
        self.digest = "" if text is None else text.sha256
        self.time_left = TimeLeft(engine.workers)
        self.total = len(experiment.tuning()) + len(experiment.trials())
        self.ran, self.reused, self.failed = 0, 0, dict[str, Problem]()
        self.other_code = 0
        self.held: dict[str, Reservation] = {}
        self.written = False  # whether this sweep has written the manifest, or found it as it would write it
        self.manifest: dict[str, Any] = {
            "format": FORMAT,
            "experiment": experiment.model_dump(mode="json"),
            "keys": [],
            "tuning": [],
            "chosen": [],
            "failures": {},
            "cost": None,
            "text": text and text.about(),
            "command": command.replace("{steps}", str(experiment.tasks[0].training.steps)),
        }

    def whole(self) -> Outcome:
        self.folder.prepare()
        tuning = self.wanted(self.experiment.tuning())
        expected = self.wanted(self.experiment.trials())
        for key, trial in (tuning | expected).items():
            self.time_left.waits(key, trial)
        if not self.goes_on() and tuning:
            self.keep_manifest(tuning=list(tuning))
        chosen, unchosen, stops = dict[Pair, Choice](), dict[Pair, str](), dict[str, str | None]()
        for stage in self.experiment.stages():
            tried = {key: trial for key, trial in tuning.items() if trial.encoding in stage}
            choices, problems = self.choose(tried, self.run(tried, lambda _, record: order_of(record)))
            chosen, unchosen = chosen | choices, unchosen | problems
            trials, missing = self.possible(chosen, unchosen)
            for key in expected.keys() - trials.keys():
                self.time_left.ends(key)
            for key, trial in trials.items():
                self.time_left.waits(key, trial)
            expected = trials
            self.keep_manifest(tuning=list(tuning), keys=list(trials))
            now = {key: trial for key, trial in trials.items() if trial.encoding in stage}
            stops |= self.run(now, stopped)
        failures = {key: problem.line for key, problem in (self.failed | self.late).items()}
        failures |= {problem.trial.key(self.digest): problem.line for problem in missing}
        self.keep_manifest(failures=failures, **self.measure())
        return Outcome(
            self.ran,
            self.reused,
            tuple(self.failed.values()),
            missing,
            self.folder.others(),
            time.monotonic() - self.begun,
            self.other_code,
            tuple(Problem(expected[key], why) for key, why in stops.items() if why is not None),
            tuple(self.late.values()),
        )

    # Who and where --------------------------------------------------------------------------------------------------

    def measure(self) -> dict[str, str | None]:
        """The keys of the measurements. There is no key for the cost if it was not measured."""

        def note(line: str) -> None:
            self.say("note", line=line)

        arguments = (self.experiment, self.folder, self.text, self.hardware)
        return {"cost": None, **measure(*arguments, say=lambda what: self.say("measuring", line=what), note=note)}

    def wanted(self, trials: Iterable[Trial]) -> dict[str, Trial]:
        return {trial.key(self.digest): trial for trial in trials}

    def goes_on(self) -> bool:
        """Whether the last sweep had this experiment; its statements stay until they are replaced."""
        kept = self.folder.experiment() or {}
        same = all(kept.get(name) == self.manifest[name] for name in ("experiment", "text"))
        if same:
            self.manifest |= {name: kept[name] for name in ("failures", *MEASURED) if name in kept}
        return same

    def keep_manifest(self, **news: Any) -> None:
        """Writes the manifest if it changed, so that repeating a finished sweep writes nothing.

        What another process has added to the experiment since stays: it has all of our trials. Raises ValueError if
        another experiment was begun in a folder that was empty when this one looked.
        """
        self.manifest |= news
        kept = self.folder.experiment()
        if kept is not None and self.written and set(kept["keys"]) > set(self.manifest["keys"]):
            self.manifest |= {name: kept[name] for name in ("experiment", "keys")}
        elif kept is not None and self.folder.was_empty and kept["experiment"] != self.manifest["experiment"]:
            raise ValueError(
                f"--out: another run has begun the experiment {kept['experiment']['name']!r} in {self.folder.path}; give "
                "another --out"
            )
        if kept != self.manifest:
            self.folder.put_experiment(self.manifest)
        self.written, self.folder.was_empty = True, False

    def say(
        self,
        what: What,
        trial: Trial | None = None,
        share: float = 1.0,
        line: str | None = None,
        score: float | None = None,
    ) -> None:
        done = self.ran + self.reused + len(self.failed)
        self.progress(Update(what, trial, share, line, done, self.total, self.time_left.left(), score))

    # Choosing a learning rate ---------------------------------------------------------------------------------------

    def choose(
        self, tuning: Mapping[str, Trial], scores: Mapping[str, Order]
    ) -> tuple[dict[Pair, Choice], dict[Pair, str]]:
        """What scores best at the trained length, by task and encoding, or why nothing was chosen."""
        tried, unchosen = dict[Pair, list[tuple[Order, Choice]]](), dict[Pair, str]()
        for key, trial in tuning.items():
            pair, choice = (trial.task.name, trial.encoding), Choice(trial.training.learning_rate, trial.options)
            if key in scores:
                tried.setdefault(pair, []).append((scores[key], choice))
            elif (problem := (self.failed | self.late)[key]).not_installed:
                unchosen[pair] = problem.line
            else:
                unchosen[pair] = f"no learning rate was chosen: at {choice.learning_rate:g}, {problem.line}"
        for pair, choices in tried.items():
            if pair not in unchosen and all(order == NO_SCORE for order, _ in choices):
                why = f"every one of {len(choices)} tries stopped early; try lower learning_rates"
                unchosen[pair] = f"no learning rate was chosen: {why}"
        chosen = {pair: min(choices)[1] for pair, choices in tried.items() if pair not in unchosen}
        self.manifest["chosen"] += [_chosen(pair, choice, tried[pair]) for pair, choice in chosen.items()]
        return chosen, unchosen

    def possible(
        self, chosen: dict[Pair, Choice], unchosen: Mapping[Pair, str]
    ) -> tuple[dict[str, Trial], tuple[Problem, ...]]:
        trials = self.experiment.trials(chosen)
        why = {trial: unchosen.get((trial.task.name, trial.encoding)) for trial in trials}
        missing = tuple(Problem(trial, line) for trial, line in why.items() if line is not None)
        return self.wanted(trial for trial in trials if why[trial] is None), missing

    # Running --------------------------------------------------------------------------------------------------------

    def run(self, trials: Mapping[str, Trial], keep: Callable[[Trial, Record], Any]) -> dict[str, Any]:
        """The result of `keep` for each record. Trials that failed are left out."""
        kept = dict[str, Any]()
        for key, trial in trials.items():
            record, unusable = self.folder.look(key)
            for note in unusable:
                self.say("note", trial, line=f"{note}; it is run again")
            if record is not None:
                kept[key] = self.find(key, trial, keep, record)
        while waiting := self.unended(trials, kept):
            before = len(waiting)
            free = [key for key in waiting if not self.folder.is_reserved(key)]
            if free:
                kept |= self.run_free(free, trials, keep)
            for key in self.unended(waiting, kept):
                if (record := self.folder.get(key)) is not None:  # another sweep has finished it
                    kept[key] = self.find(key, trials[key], keep, record)
            waiting = self.unended(waiting, kept)
            if len(waiting) == before:
                for trial in waiting.values():
                    self.say("elsewhere", trial, 0.0)
                time.sleep(LOOK_AGAIN)
        return kept

    def unended(self, trials: Mapping[str, Trial], kept: Mapping[str, Any]) -> dict[str, Trial]:
        ended = {*kept, *self.failed, *self.late}
        return {key: trial for key, trial in trials.items() if key not in ended}

    def is_late(self, key: str, trial: Trial) -> bool:
        """Whether the trial would end after the budget; it is then left to a later run."""
        if time.monotonic() + self.time_left.expected(trial) <= self.until:
            return False
        self.leave(key, trial)
        return True

    def leave(self, key: str, trial: Trial) -> None:
        self.late[key] = Problem(trial, LATE)
        self.time_left.ends(key)

    def find(self, key: str, trial: Trial, keep: Callable[[Trial, Record], Any], record: Record) -> Any:
        self.reused += 1
        self.other_code += record.about["provenance"]["fingerprint"] != fingerprint(trial)
        self.ended(key, trial, record)
        self.say("found", trial)
        return keep(trial, record)

    def run_free(
        self, keys: Sequence[str], trials: Mapping[str, Trial], keep: Callable[[Trial, Record], Any]
    ) -> dict[str, Any]:
        """Runs those trials that no other sweep reserves meanwhile."""
        kept, reserved = dict[str, Any](), dict[str, Reservation]()

        def reserve(number: int) -> bool:
            key = keys[number]
            if key not in reserved and self.is_late(key, trials[key]):
                return False
            if key not in reserved and (got := self.folder.reserve(key)) is not None:
                if self.folder.has(key):  # another sweep finished it after the search
                    got.release()
                    return False
                reserved[key] = got
            if key in reserved:
                self.time_left.runs(key, 0.0)
                self.say("running", trials[key], 0.0)
            return key in reserved

        chosen = [trials[key] for key in keys]
        origins = [provenance(trial, self.hardware) for trial in chosen]
        context = Context(self.text, self.hardware, reserve, origins, self.folder.path, self.train, self.until)
        try:
            with contextlib.closing(self.engine.run(chosen, context)) as events:  # its processes end with it
                for event in events:
                    key = keys[event.number]
                    trial = trials[key]
                    if not event.finished:
                        self.time_left.runs(key, event.share)
                        self.say("running", trial, event.share)
                        continue
                    if event.failure is None:
                        kept[key] = self.finish(key, trial, keep, event, origins[event.number])
                    else:
                        self.fail(key, trial, event.failure)
                    reserved.pop(key).release()
        finally:
            for left in reserved.values():
                left.release()
        if time.monotonic() >= self.until:
            for key, trial in self.unended({key: trials[key] for key in keys}, kept).items():
                self.leave(key, trial)
        return kept

    def finish(
        self, key: str, trial: Trial, keep: Callable[[Trial, Record], Any], event: Event, origin: Mapping[str, str]
    ) -> Any:
        record = unpacked(event.value)
        self.folder.put(key, record, trial.text(self.digest), origin)
        self.ran += 1
        self.ended(key, trial, record)
        score = abs(order_of(record)[0])
        self.say("done", trial, line=stopped(trial, record), score=score if math.isfinite(score) else None)
        return keep(trial, record)

    def fail(self, key: str, trial: Trial, line: str) -> None:
        self.failed[key] = Problem(trial, line)
        self.time_left.ends(key)
        self.say("failed", trial, line=line)

    def ended(self, key: str, trial: Trial, record: Record) -> None:
        self.time_left.ends(key)
        self.time_left.took(trial, sum(record.about["seconds"].values()))


def _chosen(pair: Pair, choice: Choice, tried: list[tuple[Order, Choice]]) -> dict[str, Any]:
    """The chosen settings as plain JSON."""
    task, encoding = pair
    entry = {"task": task, "encoding": encoding, "learning_rate": choice.learning_rate}
    entry["tried"] = sorted({choice.learning_rate for _, choice in tried})
    if choice.options:
        entry["options"] = [list(option) for option in choice.options]
    return entry


def stopped(trial: Trial, record: Record) -> str | None:
    """Why the training counts as diverged: it stopped early, or its loss ended above the loss that it began with."""
    if (failed := record.about["failed"]) is not None:
        return str(failed)
    return learning_curve.diverged(learning_curve.of(record.rows))
