"""An experiment as data: encodings, tasks, seeds and training settings. Unknown and invalid settings are refused.

    experiment = read_experiment("quick")   a preset, or the path of a YAML file
    experiment.trials()                     one for every task, encoding and seed

A trial holds everything that decides its numbers, except the text that it reads and the version of the numerics (`key`).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from posenc import catalogue
from posenc._deprecated import renamed
from posenc.lab import tasks
from posenc.lab.experiment.arm import Arm, trainable
from posenc.lab.experiment.key import NUMERICS_VERSION, key_of
from posenc.lab.tasks.task import Task

Change = Literal["interpolation", "ntk", "yarn"]
Precision = Literal["32-true", "bf16-mixed"]
PRESETS = ("compare", "quick", "standard", "full", "gpu", "micro")
TUNING_SEED = 1_000_000  # the seed of models that choose a learning rate, which are not compared
POSITIVE = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Size(Strict):
    """Sizes of the Transformer, the same in every arm."""

    d_model: int = Field(default=128, ge=8)
    n_heads: int = Field(default=4, ge=1)
    n_layers: int = Field(default=2, ge=1)
    widening: int = Field(default=4, ge=1)

    @model_validator(mode="after")
    def _heads_divide(self) -> Size:
        if self.d_model % (2 * self.n_heads):
            raise ValueError(f"d_model: expected a multiple of 2·n_heads = {2 * self.n_heads}, got {self.d_model}")
        return self


class Training(Strict):
    """Training settings of one trial. The learning rate warms up linearly, then decays linearly to 0."""

    steps: int = Field(ge=1)
    rows: int = Field(default=16, ge=1)
    learning_rate: POSITIVE = 4e-3
    warmup: float = Field(default=0.1, ge=0, le=1)  # of the steps
    weight_decay: float = Field(default=0.1, ge=0)  # of the shared matrices
    betas: tuple[float, float] = (0.9, 0.95)
    clip: POSITIVE = 1.0


class Trial(Strict):
    """One model: trained once, scored at every length.

    source      the text of the file that holds a user's own encoding
    after       changes of the frequencies after training, scored in separate rows
    oracle      trained at the longest scored length instead of `task.length`, on as many tokens
    precision   float32 throughout, or bfloat16 matrix products with float32 parameters
    """

    task: SerializeAsAny[Task]
    encoding: str
    source: str | None = None
    seed: int
    size: Size
    training: Training
    after: tuple[Change, ...] = ()
    oracle: bool = False
    precision: Precision = "32-true"

    @field_validator("task", mode="before")
    @classmethod
    def _task_by_name(cls, given: Any) -> Any:
        return task_of(given)

    def key(self, text: str) -> str:
        """64 hexadecimal digits of everything that decides the numbers; `text` is the digest of the experiment's text."""
        return key_of(self.model_dump(mode="json"), self.text(text), NUMERICS_VERSION)

    def text(self, digest: str) -> str:
        """The digest where the task reads the text, "" where it reads none."""
        return digest if self.task.reads_text else ""

    def with_steps(self, steps: int) -> Trial:
        return self.model_copy(update={"training": self.training.model_copy(update={"steps": steps})})

    def __str__(self) -> str:
        return " ".join([self.task.name, self.encoding, f"seed {self.seed}", *["oracle"] * self.oracle])


class TaskPlan(Strict):
    """A task of an experiment: its settings, its training settings, and its encodings if not all.

    learning_rates   if more than one: a model is trained with each, which is not compared, and the best rate is used
    """

    task: SerializeAsAny[Task]
    training: Training
    encodings: tuple[str, ...] | None = None
    after: tuple[Change, ...] = ()
    learning_rates: tuple[POSITIVE, ...] = ()
    oracle: bool = False

    @field_validator("task", mode="before")
    @classmethod
    def _task_by_name(cls, given: Any) -> Any:
        return task_of(given)


class Experiment(Strict):
    """An experiment, made by `read`.

    sources      the text of the files that hold users' own encodings, by the word that names them
    first_seed   the seeds are first_seed, first_seed + 1, …
    budget       seconds for the whole sweep; the steps of every task are multiplied by the largest number that fits
    properties   whether properties that need no training are measured too (`trial.fp64_properties`)
    """

    name: str
    about: dict[Literal["en", "zh"], str]
    encodings: tuple[str, ...]
    tasks: tuple[TaskPlan, ...]
    seeds: int = Field(default=3, ge=1, le=100)
    size: Size = Size()
    precision: Precision = "32-true"
    sources: dict[str, str] = {}
    first_seed: int = Field(default=0, ge=0)
    budget: POSITIVE | None = None
    properties: bool = False

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The settings after `sources` are written only if they are set, because older results do not have them."""
        unset = [name for name in ("first_seed", "budget", "properties") if not getattr(self, name)]
        return {name: value for name, value in serialize(self).items() if name not in unset}

    @model_validator(mode="after")
    def _encodings_exist(self) -> Experiment:
        for word in [*self.encodings, *(word for plan in self.tasks for word in plan.encodings or ())]:
            Arm.parse(word, self.sources.get(word))
        if len({plan.task.name for plan in self.tasks}) < len(self.tasks):
            raise ValueError("tasks: every task may appear once")
        return self

    def tuning(self) -> list[Trial]:
        """The trials that choose a learning rate; empty if there is nothing to choose."""
        return [
            self._trial(plan, word, TUNING_SEED, rate)
            for plan in self.tasks
            for word in self._encodings(plan)
            for rate in plan.learning_rates
        ]

    def trials(self, chosen: dict[tuple[str, str], float] | None = None) -> list[Trial]:
        """All trials, by seed, so that an interrupted sweep has all encodings; `chosen`: rates by task and encoding."""
        return list(self._trials(chosen or {}))

    def _trials(self, chosen: dict[tuple[str, str], float]) -> Iterator[Trial]:
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            for plan in self.tasks:
                for word in self._encodings(plan):
                    rate = chosen.get((plan.task.name, word), plan.training.learning_rate)
                    yield self._trial(plan, word, seed, rate)
                    if plan.oracle:
                        yield self._trial(plan, word, seed, rate, oracle=True)

    def first_trials(self, plan: TaskPlan) -> list[Trial]:
        """One trial for each encoding of a task, for what is measured without comparing seeds."""
        return [self._trial(plan, word, self.first_seed, plan.training.learning_rate) for word in self._encodings(plan)]

    def _encodings(self, plan: TaskPlan) -> tuple[str, ...]:
        return self.encodings if plan.encodings is None else plan.encodings

    def _trial(self, plan: TaskPlan, word: str, seed: int, rate: float, oracle: bool = False) -> Trial:
        return Trial(
            task=plan.task,
            encoding=word,
            source=self.sources.get(word),
            seed=seed,
            size=self.size,
            training=plan.training.model_copy(update={"learning_rate": rate}),
            oracle=oracle,
            after=plan.after if word == "rope" and not oracle else (),
            precision=self.precision,
        )


def task_of(given: Any) -> Any:
    """A task from its settings, by name."""
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return tasks.load(given["name"])(**given)
    return given


def read_experiment(word: str) -> Experiment:
    """A preset by name or a YAML file by path.

    Raises ValueError, which names the file and the setting, for an invalid experiment; OSError if the file cannot be read.
    """
    path = Path(word)
    if word in PRESETS:
        source = files("posenc.lab").joinpath("presets", f"{word}.yaml").read_bytes()
    elif path.suffix in (".yaml", ".yml"):
        source = path.read_bytes()
    else:
        raise ValueError(f"expected a preset ({', '.join(PRESETS)}) or a .yaml file, got {word!r}")
    try:
        return parse(source.decode(), path.parent)
    except (ValidationError, yaml.YAMLError, ValueError, TypeError) as error:
        raise ValueError(f"{word}: {_line(error)}") from None


def parse(text: str, folder: Path) -> Experiment:
    """The experiment from its settings. `folder` holds the files of users' encodings.

    Among the encodings, `foundation` means those of the founding notes and `all` everything that a trial can train.
    """
    given = yaml.safe_load(text)
    if not isinstance(given, dict):
        raise ValueError("expected settings, name: value")
    sets = {"foundation": catalogue.FOUNDATION, "all": trainable()}
    if given.get("encodings") in ("foundation", "all"):
        given["encodings"] = [given["encodings"]]
    if isinstance(words := given.get("encodings"), list):
        given["encodings"] = [
            name for word in words for name in (sets.get(word, (word,)) if isinstance(word, str) else (word,))
        ]
    plans = [plan for plan in _listed(given.get("tasks")) if isinstance(plan, dict)]
    words = [word for one in (given, *plans) for word in _listed(one.get("encodings"))]
    own = {word for word in words if isinstance(word, str) and ".py:" in word}
    given["sources"] = {word: (folder / word.partition(":")[0]).read_text("utf-8") for word in own}
    return Experiment(**given)


def _listed(given: Any) -> list[Any]:
    """A list as it is; other types are refused later, by name."""
    return given if isinstance(given, list) else []


def _line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" + (f", got {first['input']!r}"[:120] if first["type"] != "value_error" else "")
    return str(error)


def __getattr__(name: str) -> Any:
    return renamed(__name__, name)
