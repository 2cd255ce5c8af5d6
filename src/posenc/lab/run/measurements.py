"""Measurements of a sweep besides its trials: cost, exact properties, what longer windows of the text hold. Made once.

They are made in this process, or in one of their own where they run a user's file, which may end or stop it.

Every measurement is kept under a key of everything that decides it, except the machine. A sweep with a budget measures
before its trials, so that it knows the time left; any other sweep measures after its trials have ended.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from posenc.lab.engines import line as one_line
from posenc.lab.experiment.key import canonical
from posenc.lab.records.results import Unwritable
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.tasks.text import held_out_windows
from posenc.support.apart import LIMIT, told

if TYPE_CHECKING:
    from posenc.lab.experiment import Experiment, TaskPlan, Trial
    from posenc.lab.records.results import Folder
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

TIMED_TASK = "language_model"
COST_SECONDS = 1.0  # for each encoding
COST_SHARE = 0.06  # of a budget, at most: a shorter budget leaves the cost out
PROPERTIES_SECONDS, CONTEXT_SECONDS = 0.2, 1.0  # for each encoding; for a text
LOOK_AGAIN = 0.5  # seconds, while another sweep measures

Say = Callable[[str], None]


class Measurement(NamedTuple):
    """`inputs` decide the result, apart from code and machine; `function` is importable and yields it, plain JSON.

    seconds   how long that takes at least
    foreign   whether it runs a user's file
    """

    name: str
    described: str
    inputs: Mapping[str, Any]
    function: Callable[..., Iterator[dict[str, Any]]]
    arguments: tuple[Any, ...]
    seconds: float
    foreign: bool

    def measure(self) -> dict[str, Any]:
        apart = (
            told(self.function, *self.arguments, limit=LIMIT + self.seconds)
            if self.foreign
            else self.function(*self.arguments)
        )
        (value,) = apart
        return value


def measure(
    experiment: Experiment, folder: Folder, text: Corpus | None, hardware: Hardware, say: Say, note: Say
) -> dict[str, str]:
    """Makes the missing measurements and returns the keys of all measurements by name.

    `say` is called with the name of each measurement, `note` with a line for each that failed.
    """
    keys = {}
    for measurement in (_properties(experiment), _cost(experiment, text, hardware), _context(experiment, text)):
        if measurement is None:
            continue
        key = hashlib.sha256(canonical({measurement.name: measurement.inputs}).encode()).hexdigest()
        try:
            _measure_once(measurement, key, folder, say)
        except Unwritable:
            raise
        except Exception as error:  # the trials are independent of it
            note(f"{measurement.described} could not be measured: {one_line(error)}")
        else:
            keys[measurement.name] = key
    return keys


def seconds_of(experiment: Experiment) -> float:
    """About how long the measurements take on a quiet machine."""
    count = len(experiment.first_trials(experiment.tasks[0]))
    cost = COST_SECONDS * count
    timed = any(plan.task.name == TIMED_TASK for plan in experiment.tasks) and not _too_long(experiment, cost)
    return cost * timed + PROPERTIES_SECONDS * count * experiment.properties + CONTEXT_SECONDS


def _too_long(experiment: Experiment, cost: float) -> bool:
    return experiment.budget is not None and cost > COST_SHARE * experiment.budget


def _measure_once(measurement: Measurement, key: str, folder: Folder, say: Say) -> None:
    while folder.measurement(measurement.name, key) is None:
        if (held := folder.reserve(key)) is None:  # another sweep in this folder measures it
            time.sleep(LOOK_AGAIN)
            continue
        try:
            say(measurement.described)
            folder.put_measurement(measurement.name, key, measurement.measure())
            return
        finally:
            held.release()


def _properties(experiment: Experiment) -> Measurement | None:
    if not experiment.properties:
        return None
    trials = experiment.first_trials(experiment.tasks[0])

    inputs = _inputs(experiment, experiment.tasks[0], trials)
    return Measurement("properties", "exact properties", inputs, _made_properties, (trials,), 0.0, _foreign(trials))


def _made_properties(trials: list[Trial]) -> Iterator[dict[str, Any]]:
    from posenc.lab.trial.fp64_properties import order_without, properties

    rows: dict[str, Any] = {}
    for trial in trials:
        try:
            rows[trial.encoding] = properties(trial)
        except ModuleNotFoundError as error:
            rows[trial.encoding] = {"failed": f"cannot: {error}"}
        except Exception as error:  # the other encodings are measured nevertheless
            rows[trial.encoding] = {"failed": f"failed: {one_line(error)}"}
    yield {"order_without": order_without(trials[0].size), "rows": rows}


def _cost(experiment: Experiment, text: Corpus | None, hardware: Hardware) -> Measurement | None:
    """The cost measurement; None without a language model with two encodings, and on anything but one CPU."""
    plan = next((plan for plan in experiment.tasks if plan.task.name == TIMED_TASK), None)
    if plan is None or text is None or hardware.device != "cpu":
        return None
    trials = experiment.first_trials(plan)
    seconds = COST_SECONDS * len(trials)
    if len(trials) < 2 or _too_long(experiment, seconds):
        return None

    inputs, arguments = _inputs(experiment, plan, trials), (trials, text, seconds)
    return Measurement(
        "cost", "the time that each encoding takes", inputs, _made_cost, arguments, seconds, _foreign(trials)
    )


def _made_cost(trials: list[Trial], text: Corpus, seconds: float) -> Iterator[dict[str, Any]]:
    from posenc.lab.trial.cost import cost

    yield cost(trials, text, seconds, lambda share: None)


def _context(experiment: Experiment, text: Corpus | None) -> Measurement | None:
    """What a match model reaches by length on the bytes that the language model is scored on."""
    plan = next((plan for plan in experiment.tasks if isinstance(plan.task, LanguageModel)), None)
    if plan is None or text is None or len(plan.task.lengths) < 2:
        return None
    from posenc.lab.text import match_model

    scoring = plan.task.model_dump(mode="json", include={"lengths", "held_out", "targets"})
    inputs = {"text": text.sha256, "counted": match_model.COUNTED, **scoring}
    return Measurement("context", "what the text holds", inputs, _made_context, (plan.task, text), 0.0, False)


def _made_context(task: LanguageModel, text: Corpus) -> Iterator[dict[str, Any]]:
    from posenc.lab.text import match_model

    counted, rest = match_model.divided(text.train)
    width = task.lengths[-1] + 1
    fit, scored = (
        held_out_windows(replace(text, held_out=tuple(documents)), width, most).windows.numpy()
        for documents, most in ((rest, match_model.FITTED), (text.held_out, task.held_out))
    )
    near = match_model.Near(counted, min(match_model.ORDER, task.lengths[0] - task.targets + 1))
    bits_by_length = match_model.bits_by_window(near, fit, scored, task.targets, task.lengths)
    yield {"bits": {str(length): bits for length, bits in bits_by_length.items()}}


def _foreign(trials: list[Trial]) -> bool:
    return any(trial.source is not None for trial in trials)


def _inputs(experiment: Experiment, plan: TaskPlan, trials: list[Trial]) -> dict[str, Any]:
    """The inputs without the number of steps, which with a budget is a result and does not affect the measurement."""
    training = plan.training if experiment.budget is None else plan.training.model_copy(update={"steps": 1})
    arms = [trial.arm for trial in trials]
    recipe = {"task": plan.task, "size": experiment.size, "training": training}
    return {
        "arms": [{"encoding": arm.encoding, "randomized": arm.randomized, "source": arm.source} for arm in arms],
        "recipe": {name: settings.model_dump(mode="json") for name, settings in recipe.items()},
    }
