"""`posenc lab run`: runs the missing trials of an experiment and writes its report."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.lab.commands.report import conclude
from posenc.terminal.interruption import interruptible
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from posenc.lab.commands.report import Show
    from posenc.lab.engines import Engine
    from posenc.lab.experiment import Experiment
    from posenc.lab.records.results import Folder
    from posenc.lab.run.sweep import Outcome, Update
    from posenc.lab.trial.training import Hardware
    from posenc.support.languages import Language


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


class Device(StrEnum):
    cpu = "cpu"
    cuda = "cuda"


class Logger(StrEnum):
    tensorboard = "tensorboard"
    csv = "csv"
    wandb = "wandb"
    mlflow = "mlflow"


DEFAULTS = {"first_seed": 0, "text": "library", "properties": False}  # settings that are written only if they are set

GROWING = ("seeds", "fewer_seeds", "encodings", "about")  # settings that may differ where a folder's experiment grows
ADVICE = ("enough_steps", "least_steps")  # settings of a task that decide no trial


@dataclass(frozen=True)
class Wanted:
    """An experiment, with how and where to run it.

    command   the command that made the folder, when resuming; the folder may then hold another version of the experiment
    seeds     their number, if the user gave one
    called    the command that the user gave; it begins every line of progress
    again     how to continue after an interruption
    repeat    the command that repeats the training, with {steps} for the number of steps; default posenc lab run
    show      prints the findings; default tables of all numbers
    begun     time of the monotonic clock from which a budget counts
    """

    experiment: Experiment
    out: Path
    text: Path | None = None
    workers: int | None = None
    engine: str = "local"
    address: str | None = None
    device: str = "cpu"
    command: str = ""
    named: str = ""
    seeds: int | None = None
    as_json: bool = False
    keep_weights: bool = False
    logger: str = ""
    language: Language = "en"
    called: str = "posenc lab"
    again: str = ""
    repeat: str = ""
    show: Show | None = None
    begun: float = field(default_factory=time.monotonic)

    @property
    def how_to_go_on(self) -> str:
        text = f" --text {self.text}" if self.text else ""
        return self.again or f"posenc lab run --resume --out {self.out}{text} continues"


def command(
    preset: Annotated[
        str | None,
        typer.Argument(
            metavar="PRESET|FILE.yaml",
            help="A preset of posenc lab list, or a file with the same settings.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(help="A file or folder of text instead of the Python standard library.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; lab-PRESET if left out.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Models trained at the same time; one per core or device if left out.", show_default=False
        ),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Where trials run.")] = EngineName.local,
    address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of the Ray cluster; if left out, the local one or a new one.", show_default=False),
    ] = None,
    device: Annotated[Device | None, typer.Option(help="cpu or cuda; cpu if left out.", show_default=False)] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of seeds, instead of the experiment's; with --resume, more of them.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the experiment in --out, with its settings and device.")
    ] = False,
    keep_weights: Annotated[
        bool,
        typer.Option(
            "--keep-weights",
            help="Keep trained weights in OUT/weights. If only the scoring changes later, nothing is trained again.",
        ),
    ] = False,
    logger: Annotated[
        Logger | None,
        typer.Option(
            help="Also log every trial that ends, with its training curve and scores, through Lightning; into OUT/logs.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Train and write nothing: say which trials are missing, and how long they take here, by a few steps each.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Train and score the missing trials of an experiment, then write its report.

    Each finished trial is stored under a hash of all settings that determine it. The same command later trains only the
    missing trials, also after a failure or interruption, and the same experiment with more seeds or encodings only those.
    Several runs may share one folder. The report is in OUT/report: a page, pictures, CSV, Markdown.
    Several machines may share one folder: sbatch --array=1-64 --wrap "posenc lab run study --out /shared/study --workers 1"
    starts as many runs, and each takes trials that no other has.

    `then:` in an experiment trains on after a change: examples/train_on.yaml (YaRN, and positions dropped).

    Examples:  posenc lab run quick   ·   posenc lab run study --text books --workers 4   ·
    posenc lab run examples/train_on.yaml --out lab-on   ·
    posenc lab run --resume --out lab-quick --seeds 5   ·   posenc lab run study --dry-run   ·
    posenc lab run study --engine ray --address 10.0.0.1:6379
    """
    language = chosen_language(lang)
    if address is not None and engine is not EngineName.ray:
        raise typer.BadParameter(f"is for --engine ray; got --engine {engine.value}", param_hint="--address")
    if resume and preset is not None:
        raise typer.BadParameter(f"takes the experiment from --out; leave {preset!r} out", param_hint="--resume")
    wanted = resumed(out) if resume else new_run(preset, out)
    if seeds is not None:
        wanted = with_seeds(wanted, seeds)
    wanted = replace(
        wanted,
        text=text,
        workers=workers,
        engine=engine.value,
        address=address,
        as_json=as_json,
        language=language,
        keep_weights=keep_weights,
        logger=logger.value if logger else "",
        device=device.value if device else wanted.device,
    )
    if dry_run:
        from posenc.lab.commands.dry_run import say_what_would_run

        folder, _ = examined(wanted)
        say_what_would_run(wanted.experiment, folder, wanted.text, engine_of(wanted), hardware_of(wanted), wanted.as_json)
    else:
        carry_out(wanted)


def new_run(preset: str | None, out: Path | None) -> Wanted:
    from posenc.lab.experiment import PRESETS, read_experiment

    if preset is None:
        raise typer.BadParameter(f"expected one of {', '.join(PRESETS)}, or a .yaml file", param_hint="PRESET|FILE.yaml")
    if preset not in PRESETS and Path(preset).suffix not in (".yaml", ".yml"):
        raise typer.BadParameter(
            f"expected one of {', '.join(PRESETS)}, or a .yaml file; got {preset!r}", param_hint="PRESET|FILE.yaml"
        )
    name = Path(preset).name
    return Wanted(read_experiment(preset), out or Path(f"lab-{Path(preset).stem}"), named=name)


def resumed(out: Path | None, argument: str = "--out") -> Wanted:
    """The experiment, command and device stored in the folder, which the user gave as `argument`."""
    from posenc.lab.commands.folder import opened, option
    from posenc.lab.experiment import Experiment

    if out is None:
        raise typer.BadParameter("needs --out DIR, the folder to continue", param_hint="--resume")
    _, manifest = opened(out, argument)
    return Wanted(
        Experiment.model_validate(manifest["experiment"]),
        out,
        device=option(manifest, "--device", "cpu"),
        command=manifest["command"],
    )


def with_seeds(wanted: Wanted, seeds: int) -> Wanted:
    """The experiment with another number of seeds; that of a folder with more.

    Of a folder that was planned for a budget, the steps stay and the budget goes: more seeds take more time. Raises
    BadParameter for fewer seeds than the folder has.
    """
    experiment, command = wanted.experiment, wanted.command
    if command and seeds < experiment.seeds:
        raise typer.BadParameter(
            f"expected at least {experiment.seeds}, which {wanted.out} has, got {seeds}; another --out has fewer",
            param_hint="--seeds",
        )
    if command and seeds > experiment.seeds:
        added = f" && posenc lab run --resume --out {usual_folder(command)} --seeds"
        command = f"{command.partition(added)[0]}{added} {seeds}"
    experiment = experiment.model_copy(update={"seeds": seeds, "budget": None if command else experiment.budget})
    return replace(wanted, experiment=experiment, command=command, seeds=seeds)


def usual_folder(command: str) -> str:
    """The default output folder of the command that made a folder."""
    words = command.split()
    return f"lab-{Path(words[3]).stem}" if words[1:3] == ["lab", "run"] and len(words) > 3 else "posenc-compare"


def carry_out(wanted: Wanted) -> None:
    """Runs the sweep, and writes findings and report.

    Exit code 1 if a trial failed or diverged, 130 if interrupted.
    """
    with interruptible(f"finished trials are kept: {wanted.how_to_go_on}") as look:
        from rich.console import Console

        from posenc.lab.commands.progress import shown

        quiet = Console(stderr=True, highlight=False, emoji=False)
        folder = enter(wanted)
        say_plan(wanted, quiet)
        log = logging_of(wanted, folder)
        with shown(wanted.experiment, quiet, wanted.called) as tell:

            def tell_unless_interrupted(update: Update) -> None:
                look()
                tell(update)
                log(update)

            outcome = swept(wanted, tell_unless_interrupted)
        say_end(outcome, wanted.out, quiet, wanted.called)
        conclude(folder.path, wanted.out / "report", wanted.as_json, wanted.language, outcome.ran > 0, wanted.show)
    if broken := [problem.trial for problem in outcome.failed if not problem.not_installed]:
        names = ", ".join(dict.fromkeys(trial.encoding for trial in broken))
        echo(f"posenc: {number(len(broken), 'trial')} failed ({names}); the same command tries again", err=True)
    not_run = any(not problem.not_installed for problem in outcome.missing)  # `conclude` has listed them, with the reason
    for problem in outcome.diverged:
        echo(f"posenc: {problem.trial} diverged: {problem.line}", err=True)
    if broken or not_run or outcome.diverged:
        raise typer.Exit(1)


def logging_of(wanted: Wanted, folder: Folder) -> Callable[[Update], None]:
    """What logs a trial that is done. Raises ModuleNotFoundError before training where a package is missing.

    A tracker that fails later, as one whose server is away, is named once and asked no more: records are kept without it.
    """
    if not wanted.logger:
        return lambda update: None
    from posenc.lab.run import loggers
    from posenc.lab.run.sweep import read_text

    logs, text = wanted.out / loggers.FOLDER, read_text(wanted.experiment, wanted.text)
    digest = "" if text is None else text.sha256
    loggers.check(wanted.logger)
    failed = False

    def log(update: Update) -> None:
        nonlocal failed
        if failed or update.what != "done" or update.trial is None:
            return
        key = update.trial.key(digest)
        if (record := folder.get(key)) is not None:
            try:
                loggers.log(wanted.logger, logs, key, record)
            except Exception as error:  # of a package that is not ours: anything
                failed = True
                why = " ".join(str(error).split()) or type(error).__name__
                rest = "training goes on without it; every trial is in the folder of results"
                echo(f"posenc: --logger {wanted.logger} failed: {why}; {rest}", err=True)

    return log


def enter(wanted: Wanted) -> Folder:
    """The folder for this experiment, which is written into it. Raises ValueError as `examined` does."""
    folder, grown = examined(wanted)
    if grown is not None:
        folder.put_experiment(grown)
    return folder


def examined(wanted: Wanted) -> tuple[Folder, dict[str, Any] | None]:
    """The folder for this experiment, and what has to be written into it first, if anything.

    The same experiment with more seeds or encodings takes the place of the one that is there: it has all of its trials.
    Raises ValueError if the folder holds another experiment or was trained on another text, and in a new folder for a task
    whose answers need no position.
    """
    from posenc.lab.records.results import Folder, expected
    from posenc.lab.run.budget import planned_before
    from posenc.lab.run.sweep import read_text
    from posenc.lab.tasks.shortcuts import given_away

    folder = Folder(wanted.out)
    manifest = folder.experiment()
    if manifest is None:
        for plan in wanted.experiment.tasks:  # a folder that is there goes on with what it has
            if away := given_away(plan.task):
                raise ValueError(f"tasks: {away}")
        folder.was_empty = True
        return folder, None
    experiment = planned_before(wanted.experiment, manifest) or wanted.experiment
    settings = experiment.model_dump(mode="json")
    differing = differences(manifest["experiment"], settings)
    keys = list(expected(experiment, manifest)) if differing else manifest["keys"]
    grows = set(manifest["keys"]) <= set(keys) and grown_alone(manifest["experiment"], settings)
    if differing and not wanted.command and not grows:
        raise ValueError(
            f"--out: {wanted.out} holds another experiment, {manifest['experiment']['name']!r}: {', '.join(differing)}; "
            f"posenc lab run --resume --out {wanted.out} continues that one, another --out starts this one"
        )
    theirs, ours = manifest["text"], read_text(wanted.experiment, wanted.text)
    if theirs is not None and ours is not None and theirs["sha256"] != ours.sha256:
        raise ValueError(
            f"--text: {wanted.out} was trained on {theirs['source']!r} ({theirs['sha256'][:12]}…), this "
            f"is {ours.source!r} ({ours.sha256[:12]}…); give the same text, or another --out"
        )
    return folder, {**manifest, "experiment": settings, "keys": keys} if differing else None


def grown_alone(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether two experiments differ in nothing but seeds, encodings, their description and advice."""
    theirs, ours = without_advice(theirs), without_advice(ours)
    return not differences(theirs, ours | {name: theirs[name] for name in GROWING if name in theirs})


def without_advice(settings: dict[str, Any]) -> dict[str, Any]:
    plans = [{name: value for name, value in plan.items() if name not in ADVICE} for plan in settings["tasks"]]
    return settings | {"tasks": plans}


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Which settings of two experiments differ: `steps 12 instead of 13`, `other encodings`."""
    lines = list[str]()
    for name in {**theirs, **ours}:
        ours_value, other = (settings.get(name, DEFAULTS.get(name)) for settings in (theirs, ours))
        if ours_value != other and name != "about":  # which the others imply
            lines += within(name, ours_value, other) or [difference(name, ours_value, other)]
    return list(dict.fromkeys(lines)) or ["other about"] * (theirs != ours)


def within(name: str, first: Any, other: Any) -> list[str]:
    """The settings that differ within one; empty if it is to be named as a whole."""
    if name in ("size", "task", "training"):
        return differences(first, other)
    if name != "tasks" or [plan["task"]["name"] for plan in first] != [plan["task"]["name"] for plan in other]:
        return []
    return [line for plan, plan_of_other in zip(first, other, strict=True) for line in differences(plan, plan_of_other)]


def difference(name: str, first: Any, other: Any) -> str:
    """A setting that differs, with its two values if they are short."""
    if isinstance(first, (dict, list)) or isinstance(other, (dict, list)) or len(f"{first}{other}") > 60:
        return f"other {name}"
    return f"{name} {shown(first)} instead of {shown(other)}"


def shown(value: Any) -> str:
    """As in YAML."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def say_plan(wanted: Wanted, console: Console) -> None:
    experiment = wanted.experiment
    for plan in experiment.tasks:
        words = plan.encodings or experiment.encodings
        seeds = f"{number(len(words), 'encoding')} × {number(experiment.seeds, 'seed')}"
        rates = f", {number(len(plan.learning_rates), 'learning rate')}" if plan.learning_rates else ""
        oracle = ", also trained at the longest length" if plan.oracle else ""
        steps = (
            number(plan.training.steps, "step")
            if experiment.budget is None
            else f"steps for {experiment.budget:g} s in all"
        )
        console.print(f"{wanted.called}: {plan.task.name}: {seeds}, {steps}{rates}{oracle}", soft_wrap=True, markup=False)


def number(count: int, noun: str) -> str:
    """1 seed, 2 seeds."""
    return f"{count} {noun}{'s' * (count != 1)}"


def swept(wanted: Wanted, tell: Any) -> Outcome:
    from posenc.lab.records.results import WEIGHTS, Folder
    from posenc.lab.run.sweep import sweep
    from posenc.lab.trial.training import run_trial

    return sweep(
        wanted.experiment,
        Folder(wanted.out),
        engine_of(wanted),
        text=wanted.text,
        hardware=hardware_of(wanted),
        command=wanted.command or wanted.repeat or command_of(wanted),
        progress=tell,
        train=partial(run_trial, weights=wanted.out / WEIGHTS) if wanted.keep_weights else None,
        begun=wanted.begun,
    )


def hardware_of(wanted: Wanted) -> Hardware:
    """Raises ValueError if CUDA is asked for and torch finds no CUDA device."""
    import torch

    from posenc.lab.trial.training import Hardware

    if wanted.device == "cuda" and wanted.engine == "local" and not torch.cuda.is_available():
        raise ValueError("--device: torch sees no CUDA device here; leave it out for the CPU")
    return Hardware(wanted.device)


def engine_of(wanted: Wanted) -> Engine:
    from posenc.lab import engines

    return engines.named(wanted.engine, wanted.workers, wanted.address)


def command_of(wanted: Wanted) -> str:
    """The command that repeats the experiment: the options that determine the numbers, without local folders."""
    words = ["posenc", "lab", "run", wanted.named]
    words += ["--text", wanted.text.resolve().name] if wanted.text else []
    words += ["--seeds", str(wanted.seeds)] if wanted.seeds is not None else []
    words += ["--device", wanted.device] if wanted.device != "cpu" else []
    return shlex.join(words)


def say_end(outcome: Outcome, out: Path, console: Console, called: str) -> None:
    others = f"; the folder also holds {number(outcome.others, 'trial')} with other settings or another text"
    others = others if outcome.others else ""
    diverged = f", {len(outcome.diverged)} diverged" if outcome.diverged else ""
    late = f", {len(outcome.late)} left out when the budget was over" if outcome.late else ""
    console.print(
        f"{called}: {number(outcome.ran, 'trial')} run, {outcome.reused} found, {len(outcome.failed)} failed{diverged}"
        f"{late}, {outcome.seconds:.0f} s{others}",
        soft_wrap=True,
        markup=False,
    )
    if outcome.other_code:
        console.print(
            f"{called}: {outcome.other_code} of the trials found were made by other code and are not run again; "
            f"posenc lab repeat TRIAL --in {out} trains one again and compares its scores",
            soft_wrap=True,
            markup=False,
        )
