"""An experiment as data: encodings, tasks, seeds and training settings. Unknown and invalid settings are refused.

    experiment = read_experiment("quick")   a preset, or the path of a YAML file
    experiment.trials()                     one for every task, encoding and seed

A trial holds everything that decides its numbers, except the text that it reads and the version of the numerics (`key`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_serializer,
    model_validator,
)

from posenc.catalogue import lookup
from posenc.lab import tasks, user_file
from posenc.lab.experiment import strict_yaml, user_encoding
from posenc.lab.experiment.arm import ABACUS, Arm, encoding_of, trainable, tuned_as
from posenc.lab.experiment.change import ChangeName, Then
from posenc.lab.experiment.encoding_settings import check_settings
from posenc.lab.experiment.error_line import line
from posenc.lab.experiment.key import NUMERICS_VERSION, key_of
from posenc.lab.tasks.task import Task

Precision = Literal["32-true", "bf16-mixed"]
TextName = Literal["library", "prose", "prose_6000"]
PRESETS = ("compare", "compare_text", "quick", "study", "far_context", "long_text", "gpu", "micro", "words")
TUNING_SEED = 1_000_000  # the seed of models that choose a learning rate, which are not compared
SCORING = {"after", "then", "draws"}  # settings of a trial that do not affect its training
DRAWS = 8  # draws of random positions that a model trained at random positions is scored at
SPREAD = 2  # number of positions to draw from over the longest scored length; Ruoss et al.: 2048 for lengths up to 500
POSITIVE = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Options = tuple[tuple[str, POSITIVE], ...]
NAME = r"^[\w-]+$"  # of a folder


def _number(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """One error for what is neither a whole number nor another positive one."""
    try:
        return read(value)
    except ValueError:
        raise ValueError(f"expected a positive number, got {value!r}") from None


def _different(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        raise ValueError("expected a list of at least one encoding, got []")
    if twice := next((word for word in words if words.count(word) > 1), None):
        raise ValueError(f"expected different encodings, got {twice} twice; name it once")
    return words


Setting = Annotated[Annotated[int, Field(ge=1)] | POSITIVE, WrapValidator(_number)]
Encodings = Annotated[tuple[str, ...], AfterValidator(_different)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Size(Strict):
    """Sizes of the Transformer, the same in every arm.

    widening   hidden channels of the feed-forward network over d_model; SwiGLU has two matrices of this height and GELU one
    block      gelu, or swiglu: SwiGLU with normalized queries and keys, as in Qwen 3 (`trial.model`)
    """

    d_model: int = Field(default=128, ge=8)
    n_heads: int = Field(default=4, ge=1)
    n_layers: int = Field(default=2, ge=1)
    widening: int = Field(default=4, ge=1)
    block: Literal["gelu", "swiglu"] = "gelu"

    @model_serializer(mode="wrap")
    def _without_default_block(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Older results do not name the block."""
        return {name: value for name, value in serialize(self).items() if (name, value) != ("block", "gelu")}

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
    settings    what the experiment sets of the encoding in place of its defaults: (("first_length", 32),)
    options     what tuning chose of the encoding in place of its defaults: (("base", 500.0),)
    draws       of random positions that scores are the mean over; 0: scored at 0, 1, 2, … only, as posenc 0.1 did
    after       changes of the frequencies after training (`experiment.change`), scored in separate rows
    then        changes after which the model is trained on, each from the trained model; scored in separate rows
    oracle      trained at the longest scored length instead of `task.length`, on as many tokens
    precision   float32 throughout, or bfloat16 matrix products with float32 parameters
    """

    task: SerializeAsAny[Task]
    encoding: str
    source: str | None = None
    settings: tuple[tuple[str, Setting], ...] = ()
    options: Options = ()
    draws: int = Field(default=0, ge=0)
    seed: int
    size: Size
    training: Training
    after: tuple[ChangeName, ...] = ()
    then: tuple[Then, ...] = ()
    oracle: bool = False
    precision: Precision = "32-true"

    @field_validator("task", mode="before")
    @classmethod
    def _task_by_name(cls, task: Any) -> Any:
        return task_of(task)

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """These are written only if there are any, so that the keys of older results stay."""
        unset = [name for name in ("settings", "options", "draws", "then") if not getattr(self, name)]
        return {name: value for name, value in serialize(self).items() if name not in unset}

    @model_validator(mode="after")
    def _random_positions_are_drawn(self) -> Trial:
        if self.draws > 0 and not self.arm.randomized:
            raise ValueError(f"draws: expected 0 without random positions, got {self.draws} for {self}")
        return self

    @model_validator(mode="after")
    def _digits_are_counted_in_numbers(self) -> Trial:
        check_numbers(self.task, self.encoding)
        return self

    @property
    def arm(self) -> Arm:
        return Arm.parse(self.encoding, self.source, (*self.settings, *self.options), SPREAD if self.draws else 1)

    def key(self, text: str) -> str:
        """64 hexadecimal digits of everything that decides the numbers; `text` is the digest of the experiment's text."""
        return key_of(self.model_dump(mode="json"), self.text(text), NUMERICS_VERSION)

    def weights_key(self, text: str) -> str:
        """64 hexadecimal digits of what decides the trained weights: the key without what only scoring reads.

        The longest length decides the weights of a model that is trained there, or at positions up to there.
        """
        settings = self.model_dump(mode="json")
        reads_longest = self.oracle or self.arm.randomized or self.arm.abacus
        settings["task"] = {name: value for name, value in settings["task"].items() if name not in self.task.scoring}
        settings["task"]["longest"] = self.task.lengths[-1] if reads_longest else None
        return key_of(
            {name: value for name, value in settings.items() if name not in SCORING}, self.text(text), NUMERICS_VERSION
        )

    @property
    def all_steps(self) -> int:
        """Training steps, those after a change among them."""
        return self.training.steps + sum(then.steps for then in self.then)

    @property
    def most_tokens(self) -> int:
        """At most so many tokens are trained on: a step after a change has as many as one before."""
        return self.all_steps * self.training.rows * self.task.tokens(self.task.length)

    def text(self, digest: str) -> str:
        """The digest where the task reads the text, "" where it reads none."""
        return digest if self.task.reads_text else ""

    def with_steps(self, steps: int) -> Trial:
        return self.model_copy(update={"training": self.training.model_copy(update={"steps": steps})})

    def __str__(self) -> str:
        """copy rope seed 0; copy rope tuning, rate 0.002, base 500."""
        if self.seed == TUNING_SEED:
            options = "".join(f", {name} {value:g}" for name, value in self.options)
            return f"{self.task.name} {self.encoding} tuning, rate {self.training.learning_rate:g}{options}"
        return " ".join([self.task.name, self.encoding, f"seed {self.seed}", *["oracle"] * self.oracle])


class Choice(NamedTuple):
    """What tuning chooses for an encoding: a learning rate, and settings of its own."""

    learning_rate: float
    options: Options = ()


class TaskPlan(Strict):
    """A task of an experiment: its settings, its training settings, and its encodings if not all.

    learning_rates   if more than one: a model is trained with each, which is not compared, and the best rate is used
    settings         settings of single encodings in place of their defaults: {fire: {first_length: 32}}
    own_scales       settings of single encodings that are tried too, at the rate of `training`: {rope: {base: [500]}}. They
                     replace as many of the last learning rates, so that all encodings have equally many tries
    joint_scales     settings that are tried at several rates: {rope: {base: [500, 100000]}}. With n values, the first
                     1/(n + 1) of the learning rates are tried with the default and with each value
    tuning_steps     steps of the models that are not compared, which are then scored at the trained length only; those of
                     `training` if left out
    enough_steps     steps with which posenc's own runs converged, or their most steps where none did; a time budget that
                     gives fewer is announced before training
    least_steps      steps that a comparison needs; a time budget that gives fewer drops seeds, then encodings
    """

    task: SerializeAsAny[Task]
    training: Training
    encodings: Encodings | None = None
    after: tuple[ChangeName, ...] = ()
    then: tuple[Then, ...] = ()
    learning_rates: tuple[POSITIVE, ...] = ()
    settings: dict[str, dict[str, Setting]] = {}
    own_scales: dict[str, dict[str, tuple[POSITIVE, ...]]] = {}
    joint_scales: dict[str, dict[str, tuple[POSITIVE, ...]]] = {}
    tuning_steps: int | None = Field(default=None, ge=1)
    oracle: bool = False
    enough_steps: int | None = Field(default=None, ge=1)
    least_steps: int | None = Field(default=None, ge=1)

    @field_validator("task", mode="before")
    @classmethod
    def _task_by_name(cls, task: Any) -> Any:
        return task_of(task)

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Older results do not have these settings."""
        unset = [
            name
            for name in ("then", "settings", "own_scales", "joint_scales", "tuning_steps", "enough_steps", "least_steps")
            if not getattr(self, name)
        ]
        return {name: value for name, value in serialize(self).items() if name not in unset}

    @model_validator(mode="after")
    def _tries_are_equal(self) -> TaskPlan:
        for encoding in self.own_scales:
            if (count := len(self.scales(encoding))) >= len(self.learning_rates):
                raise ValueError(
                    f"own_scales: {encoding} has {count} values; expected fewer than the {len(self.learning_rates)} "
                    "learning_rates, because every encoding has as many tries"
                )
        for encoding in self.joint_scales:
            if encoding in self.own_scales:
                raise ValueError(f"joint_scales: {encoding} is in own_scales too; expected it in one of them")
            if len(self.learning_rates) % (count := 1 + len(self.joint(encoding))):
                raise ValueError(
                    f"joint_scales: {encoding} has {count - 1} values; expected the {len(self.learning_rates)} "
                    f"learning_rates to be a multiple of {count}, because every encoding has as many tries"
                )
        return self

    def scales(self, encoding: str) -> list[tuple[str, float]]:
        return _each(self.own_scales.get(encoding, {}))

    def joint(self, encoding: str) -> list[tuple[str, float]]:
        return _each(self.joint_scales.get(encoding, {}))

    def tries(self, encoding: str) -> list[Choice]:
        """What is tried for an encoding: learning rates, and values of its own scale at one rate or at several."""
        if joint := self.joint(encoding):
            each: list[Options] = [(), *((scale,) for scale in joint)]
            return [
                Choice(rate, options)
                for options in each
                for rate in self.learning_rates[: len(self.learning_rates) // len(each)]
            ]
        scales = self.scales(encoding)
        rates = self.learning_rates[: len(self.learning_rates) - len(scales)]
        return [*(Choice(rate) for rate in rates), *(Choice(self.training.learning_rate, (scale,)) for scale in scales)]


def _each(scales: Mapping[str, tuple[float, ...]]) -> list[tuple[str, float]]:
    return [(name, value) for name, values in scales.items() for value in values]


class Experiment(Strict):
    """An experiment, made by `read`.

    sources      the text of the files that hold users' own encodings, by the word that names them
    first_seed   the seeds are first_seed, first_seed + 1, …
    budget       seconds for the whole command; the steps of every task are multiplied by the largest number that fits
    properties   whether properties that need no training are measured too (`trial.fp64_properties`)
    fewer_seeds  encodings with fewer seeds than the others, which run after the others: {fire: 3}
    draws        of random positions, for encodings that are trained at random positions
    text         "library": the sources of Python's standard library; "prose", "prose_6000": generated (`experiment.prose`)
    """

    name: str = Field(pattern=NAME)
    about: dict[Literal["en", "zh"], str]
    encodings: Encodings
    tasks: tuple[TaskPlan, ...] = Field(min_length=1)
    seeds: int = Field(default=3, ge=1, le=100)
    size: Size = Size()
    precision: Precision = "32-true"
    sources: dict[str, str] = {}
    first_seed: int = Field(default=0, ge=0)
    budget: POSITIVE | None = None
    properties: bool = False
    fewer_seeds: dict[str, Annotated[int, Field(ge=1)]] = {}
    text: TextName = "library"
    draws: int = Field(default=DRAWS, ge=0)

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The settings after `sources` are written only if they are set, because older results do not have them."""
        unset = [name for name in ("first_seed", "budget", "properties", "fewer_seeds") if not getattr(self, name)]
        unset += [name for name in ("text", "draws") if getattr(self, name) == type(self).model_fields[name].default]
        return {name: value for name, value in serialize(self).items() if name not in unset}

    @model_validator(mode="after")
    def _encodings_exist(self) -> Experiment:
        for word in [*self.encodings, *(word for plan in self.tasks for word in plan.encodings or ())]:
            Arm.parse(word, self.sources.get(word))
        if len({plan.task.name for plan in self.tasks}) < len(self.tasks):
            raise ValueError("tasks: every task may appear once")
        for plan in self.tasks:
            words = self.of(plan)
            for word in words:
                check_numbers(plan.task, word)
            if wrong := [then.length for then in plan.then if then.length not in plan.task.lengths]:
                raise ValueError(f"then: expected a length among {plan.task.lengths}, got {wrong[0]}")
            if (plan.after or plan.then) and "rope" not in words:
                raise ValueError(
                    f"{'after' if plan.after else 'then'}: changes the frequencies of a trained RoPE; {plan.task.name} has "
                    f"no encoding rope, only {', '.join(words)}"
                )
            self._settings_exist(plan)
            for name, scales in (("own_scales", plan.own_scales), ("joint_scales", plan.joint_scales)):
                if unknown := sorted(scales.keys() - set(words)):
                    raise ValueError(f"{name}: {unknown[0]} is none of the encodings of {plan.task.name}")
            for word in (*plan.own_scales, *plan.joint_scales):
                for scale in (*plan.scales(word), *plan.joint(word)):
                    Arm.parse(word, self.sources.get(word), (scale,))
        if unknown := sorted(self.fewer_seeds.keys() - set(self.encodings)):
            raise ValueError(f"fewer_seeds: {unknown[0]} is none of the encodings")
        if more := sorted(word for word, count in self.fewer_seeds.items() if count > self.seeds):
            raise ValueError(f"fewer_seeds: expected at most {self.seeds} for {more[0]}, got {self.fewer_seeds[more[0]]}")
        return self

    def _settings_exist(self, plan: TaskPlan) -> None:
        for word, settings in plan.settings.items():
            if word not in self.of(plan):
                raise ValueError(f"settings: {word} is none of the encodings of {plan.task.name}")
            if word in self.sources:
                raise ValueError(f"settings: {word} is an encoding of your own; its defaults are set in its file")
            try:
                check_settings(word, settings, self.size, plan.task.causal)
            except ValueError as error:
                raise ValueError(f"settings of {word} in {plan.task.name}: {error}") from None

    def tuning(self) -> list[Trial]:
        """The trials that choose a learning rate or a scale; empty if there is nothing to choose."""
        return [
            self._trial(plan, word, TUNING_SEED, choice, steps=plan.tuning_steps)
            for plan in self.tasks
            for word in self.of(plan)
            if tuned_as(word, self.of(plan)) == word
            for choice in plan.tries(word)
        ]

    def trials(self, chosen: Mapping[tuple[str, str], Choice] | None = None) -> list[Trial]:
        """All trials, by seed, so that an interrupted sweep has all encodings; `chosen` is by task and encoding.

        Encodings with fewer seeds come after the others.
        """
        return list(self._trials(chosen or {}))

    def _trials(self, chosen: Mapping[tuple[str, str], Choice]) -> Iterator[Trial]:
        for stage in self.stages():
            for seed in range(self.first_seed, self.first_seed + self.seeds_of(stage[0])):
                for plan in self.tasks:
                    for word in (word for word in self.of(plan) if word in stage):
                        tried = (plan.task.name, tuned_as(word, self.of(plan)))
                        choice = chosen.get(tried, Choice(plan.training.learning_rate))
                        yield self._trial(plan, word, seed, choice)
                        if plan.oracle:
                            yield self._trial(plan, word, seed, choice, oracle=True)

    def stages(self) -> list[tuple[str, ...]]:
        """The encodings by their number of seeds, the most first: a stage is tuned and trained before the next one."""
        words = dict.fromkeys(word for plan in self.tasks for word in self.of(plan))
        counts = sorted({self.seeds_of(word) for word in words}, reverse=True)
        return [tuple(word for word in words if self.seeds_of(word) == count) for count in counts]

    def first_trials(self, plan: TaskPlan) -> list[Trial]:
        """One trial for each encoding of a task, for what is measured without comparing seeds."""
        default = Choice(plan.training.learning_rate)
        return [self._trial(plan, word, self.first_seed, default) for word in self.of(plan)]

    def of(self, plan: TaskPlan) -> tuple[str, ...]:
        """The encodings of a task."""
        return self.encodings if plan.encodings is None else plan.encodings

    def seeds_of(self, word: str) -> int:
        """The number of seeds of an encoding."""
        return self.fewer_seeds.get(word, self.seeds)

    def _trial(
        self, plan: TaskPlan, word: str, seed: int, choice: Choice, *, oracle: bool = False, steps: int | None = None
    ) -> Trial:
        changed = {"learning_rate": choice.learning_rate, "steps": steps or plan.training.steps}
        arm, task = Arm.parse(word, self.sources.get(word)), plan.task
        is_changed = word == "rope" and not oracle and steps is None
        if steps is not None and not (arm.randomized or arm.abacus):  # which draw positions up to the longest length
            task = task.model_copy(update={"lengths": (task.length,)})
        return Trial(
            task=task,
            encoding=word,
            source=self.sources.get(word),
            settings=tuple(plan.settings.get(word, {}).items()),
            options=choice.options,
            draws=self.draws if arm.randomized else 0,
            seed=seed,
            size=self.size,
            training=plan.training.model_copy(update=changed),
            oracle=oracle,
            after=plan.after if is_changed else (),
            then=plan.then if is_changed else (),
            precision=self.precision,
        )


FLAGS = {
    name for model in (Experiment, TaskPlan) for name, about in model.model_fields.items() if about.annotation is bool
}  # settings that are true or false


def check_numbers(task: Task, word: str) -> None:
    """Raises ValueError for Abacus positions in a task without numbers."""
    if word.endswith(ABACUS) and not task.digits_of_a_number(task.length):
        raise ValueError(f"{word}: counts the digits of numbers, and the task {task.name} has none; addition has")


def task_of(settings: Any) -> Any:
    """A task from its settings, by name."""
    if isinstance(settings, dict) and not isinstance(settings.get("name"), str):
        raise ValueError("expected the name of a task, such as {name: copy}; posenc lab list names them")
    if isinstance(settings, dict):
        return tasks.read(settings)
    return settings


def read_experiment(word: str) -> Experiment:
    """A preset by name or a YAML file by path.

    Raises ValueError, which names the file and the setting, for a file that cannot be read and for an invalid experiment.
    """
    path = Path(word)
    if word in PRESETS:
        source = files("posenc.lab").joinpath("presets", f"{word}.yaml").read_bytes()
    elif path.suffix in (".yaml", ".yml"):
        source = _content(path)
    else:
        raise ValueError(f"expected a preset ({', '.join(PRESETS)}) or a .yaml file, got {word!r}")
    try:
        return parse(source.decode(), path.parent)
    except UnicodeDecodeError:
        raise ValueError(f"{word}: expected an experiment as YAML, got a file that is not text in UTF-8") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{word}: {line(error, Experiment)}") from None


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(strict_yaml.LARGEST + 1)
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read: {error.strerror}; expected a YAML file or a preset of posenc lab list"
        ) from None


def parse(text: str, folder: Path) -> Experiment:
    """The experiment from its settings. `folder` holds the files of users' encodings, which are executed.

    Among the encodings, `foundation` means those of the founding notes and `all` everything that a trial can train.
    """
    settings = strict_yaml.loads(text)
    if not isinstance(settings, dict):
        raise ValueError("expected settings, name: value")
    _refuse_booleans(settings)
    sets = {"foundation": lookup.FOUNDATION, "all": trainable()}
    if settings.get("encodings") in ("foundation", "all"):
        settings["encodings"] = [settings["encodings"]]
    if isinstance(words := settings.get("encodings"), list):
        settings["encodings"] = [
            name for word in words for name in (sets.get(word, (word,)) if isinstance(word, str) else (word,))
        ]
    plans = [plan for plan in _listed(settings.get("tasks")) if isinstance(plan, dict)]
    words = [word for section in (settings, *plans) for word in _listed(section.get("encodings"))]
    user_words = {word for word in words if isinstance(word, str) and ".py:" in word}
    settings["sources"] = {word: source_of(word, folder) for word in user_words}
    user_encoding.check({encoding_of(word): source for word, source in settings["sources"].items()})
    own_tasks = [task for plan in plans if isinstance(task := plan.get("task"), dict) and _is_from_file(task)]
    for task in own_tasks:
        task["source"] = source_of(task["name"], folder)
    user_file.check({task["name"]: task["source"] for task in own_tasks}, tasks.load)
    return Experiment(**settings)


def _refuse_booleans(settings: Any, where: str = "") -> None:
    """Raises ValueError for true and false where they would count as 1 and 0."""
    named: Iterable[tuple[Any, Any]] = settings.items() if isinstance(settings, dict) else enumerate(settings)
    for name, value in named:
        if isinstance(value, bool) and name not in FLAGS:
            raise ValueError(f"{where}{name}: expected a number or text, got {str(value).lower()}")
        if isinstance(value, (dict, list)):
            _refuse_booleans(value, f"{where}{name}.")


def _is_from_file(task: Mapping[str, Any]) -> bool:
    return isinstance(task.get("name"), str) and tasks.is_from_file(task["name"])


def source_of(word: str, folder: Path) -> str:
    """The text of the file that holds a user's encoding or task."""
    return user_file.text_of(folder / word.partition(":")[0], word)


def _listed(value: Any) -> list[Any]:
    """A list as it is; other types are refused later, by name."""
    return value if isinstance(value, list) else []
