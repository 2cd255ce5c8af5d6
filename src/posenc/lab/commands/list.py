"""`posenc lab list`: presets and tasks, or the trials of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.lab.say import say
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from posenc.lab.commands.folder import Line
    from posenc.support.languages import Language, Words

PRESETS = (
    *(say("preset"), say("encodings", context="number"), say("tasks", context="number"), say("seeds", context="number")),
    *(say("trials", context="number"), say("tokens", context="number"), say("what it is for")),
)
TASKS = (say("task"), say("title"), say("scored by"), say("a length counts"))
TRIALS = (say("trial"), say("scores by length"), say("minutes"), say("key"))


def command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A folder that posenc lab run has written.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """List the presets and tasks; with a folder, its trials and their scores.

    Tokens: the maximum number of training tokens, summed over all models, with those of training on after a change (then:);
    for a preset with a time budget, the time.
    Scores use the same targets at every length: bits per target, or the share of rows that are entirely correct. Those of
    a model trained at random positions are the mean over draws of such positions.

    Examples:  posenc lab list   ·   posenc lab list lab-quick   ·   posenc lab list lab-quick --json
    """
    language = chosen_language(lang)
    if folder is None:
        described = {"presets": presets(), "tasks": task_list()}
        show = _show_choice
    else:
        described = {"trials": trials(folder)}
        show = _show_trials
    if as_json:
        echo_json(described, indent=1)
        return
    from rich.console import Console

    show(described, language, Console(highlight=False, emoji=False))


def presets() -> list[dict[str, Any]]:
    from posenc.lab.experiment import PRESETS, read_experiment

    described = []
    for name in PRESETS:
        experiment = read_experiment(name)
        everything = [*experiment.trials(), *experiment.tuning()]
        tokens = sum(trial.most_tokens for trial in everything)
        described.append(
            {
                "name": name,
                "about": dict(experiment.about),
                "encodings": list(experiment.encodings),
                "tasks": [plan.task.name for plan in experiment.tasks],
                "seeds": experiment.seeds,
                "trials": len(everything),
                "tokens": tokens if experiment.budget is None else None,
                "budget": experiment.budget,
            }
        )
    return described


def task_list() -> list[dict[str, Any]]:
    from posenc.lab import tasks

    return [
        {
            "name": name,
            "title": task.title.as_dict(),
            "unit": task.unit.as_dict(),
            "measure": task.measure,
            "causal": task.causal,
            "reads_text": task.reads_text,
        }
        for name in tasks.names()
        for task in [tasks.load(name)]
    ]


def trials(path: Path) -> list[dict[str, Any]]:
    from posenc.lab.commands.folder import lines, opened, warn_of_damage

    folder, manifest = opened(path, "DIR")
    warn_of_damage(folder)
    return [as_data(line) for line in lines(folder, manifest)]


def as_data(line: Line) -> dict[str, Any]:
    fields = {name: getattr(line, name) for name in ("key", "task", "encoding", "seed", "oracle", "state", "seconds")}
    return {**fields, "scores": {str(length): value for length, value in line.scores.items()}}


def _show_choice(described: dict[str, Any], language: Language, console: Console) -> None:
    from posenc.lab.report.words import measured_in
    from posenc.terminal.wrapped import Wrapped

    table = _table(PRESETS, language, range(1, 6))
    for preset in described["presets"]:
        table.add_row(
            f"[bold]{preset['name']}[/bold]",
            str(len(preset["encodings"])),
            str(len(preset["tasks"])),
            str(preset["seeds"]),
            str(preset["trials"]),
            amount(preset["tokens"]) if preset["budget"] is None else f"{preset['budget']:g} s",
            Wrapped(preset["about"][language]),
        )
    console.print(table)
    table = _table(TASKS, language)
    for preset in described["tasks"]:
        table.add_row(
            f"[bold]{preset['name']}[/bold]",
            Wrapped(preset["title"][language]),
            Wrapped(measured_in(preset["measure"]).in_language(language)),
            Wrapped(preset["unit"][language]),
        )
    console.print(table)


def _show_trials(described: dict[str, Any], language: Language, console: Console) -> None:
    from posenc.terminal.wrapped import Wrapped

    table = _table(TRIALS, language, [2], fixed=[2, 3])
    for t in described["trials"]:
        words = f"{t['task']} {t['encoding']} seed\u00a0{t['seed']}{' oracle' * t['oracle']}"
        scores = "  ".join(f"{length}:\u00a0{value:.2f}" for length, value in t["scores"].items())
        minutes = "" if t["seconds"] is None else f"{t['seconds'] / 60:.1f}"
        table.add_row(Wrapped(words), Wrapped(scores if t["scores"] else t["state"]), minutes, (t["key"] or "")[:8])
    console.print(table)


def _table(headings: tuple[Words, ...], language: Language, right: Any = (), fixed: Any = None) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        whole = place in ((0, *right) if fixed is None else fixed)
        table.add_column(heading.in_language(language), justify="right" if place in right else "left", no_wrap=whole)
    return table


def amount(number: int) -> str:
    """12 k, 3.4 M, 1.2 G."""
    for power, letter in ((9, "G"), (6, "M"), (3, "k")):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {letter}"
    return str(number)
