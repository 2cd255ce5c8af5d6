"""`posenc compare`: the preset `compare` of the lab, or `compare_text` on a text of the user's."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.language import chosen_language

if TYPE_CHECKING:
    from posenc.lab.experiment import Experiment

STEPS = 10  # of which a time budget gives a multiple
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def command(
    text: Annotated[
        Path | None,
        typer.Option(help="A file or folder of text: compares in a language model on its bytes.", show_default=False),
    ] = None,
    encodings: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas; NAME+randomized trains at random positions; FILE.py:CLASS is your own.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Total time: 90s, 5m, 1h. More time means more training. With --text, 5m if left out.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path("posenc-compare"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of training steps, instead of a time budget.", show_default=False)
    ] = None,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Train encodings on short inputs, score them on inputs up to sixteen times as long, and rank them.

    The task is to find a number among other digits in random words (passkey): seven encodings, five seeds, about seven
    minutes on two cores.
    With --text, it is a language model on the bytes of your text: twelve encodings, two seeds, five minutes. The report is
    in OUT/report: a page, pictures, CSV, Markdown. If interrupted, the same command continues. `posenc lab` has more tasks,
    more seeds and other machines.

    Examples:  posenc compare   ·   posenc compare --encodings rope,alibi   ·   posenc compare --text book.txt --budget 20m
    """
    if budget is not None and steps is not None:
        raise typer.BadParameter(f"is for training within a time; leave it or --steps {steps} out", param_hint="--budget")
    seconds, language = None if budget is None else parse_budget(budget), chosen_language(lang)
    from posenc.lab.commands.answer import show
    from posenc.lab.commands.run import Wanted, carry_out
    from posenc.lab.experiment import read_experiment

    preset = read_experiment("compare_text" if text else "compare")
    experiment = chosen(preset, encodings, seed, seconds, steps)
    carry_out(
        Wanted(
            experiment,
            out,
            text=text,
            named="compare",
            as_json=as_json,
            language=language,
            called="posenc compare",
            again="the same command continues",
            repeat=repeat(encodings, seed, text),
            show=show,
        )
    )


def parse_budget(budget: str) -> float:
    """Seconds. Raises BadParameter for anything but a positive number and a unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", budget.strip())
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise typer.BadParameter(f"expected a time such as 90s, 5m or 1h, got {budget!r}", param_hint="--budget")
    return seconds


def chosen(preset: Experiment, encodings: str | None, seed: int, budget: float | None, steps: int | None) -> Experiment:
    """The preset with the user's encodings, seed, and budget or steps; without either, its own."""
    from posenc.lab.experiment import Experiment, user_encoding
    from posenc.lab.experiment.arm import Arm

    changes: dict[str, Any] = {"first_seed": seed}
    if encodings is not None:
        words = [word.strip() for word in encodings.split(",")]
        names = [Path(word).name for word in words]  # without the folders of users' files
        if not all(words) or len(set(names)) < len(names):
            raise typer.BadParameter(
                f"expected different names separated by commas, got {encodings!r}", param_hint="--encodings"
            )
        changes["sources"] = {name: source(word) for name, word in zip(names, words, strict=True) if ".py:" in word}
        changes["encodings"] = tuple(names)
        try:
            arms = [Arm.parse(word, changes["sources"].get(word)) for word in changes["encodings"]]
            user_encoding.check({arm.encoding: arm.source for arm in arms if arm.source is not None})
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--encodings") from error
    tasks = preset.tasks
    if "rope" not in changes.get("encodings", preset.encodings):  # there is nothing to change after training
        tasks = tuple(plan.model_copy(update={"after": (), "then": ()}) for plan in tasks)
    if budget is not None or steps is not None:
        changes["budget"], count = budget, steps or STEPS
        trained = (plan.training.model_copy(update={"steps": count}) for plan in tasks)
        tasks = tuple(plan.model_copy(update={"training": training}) for plan, training in zip(tasks, trained, strict=True))
    changes["tasks"] = tasks
    return Experiment.model_validate(preset.model_copy(update=changes).model_dump())


def source(word: str) -> str:
    """The text of the file that holds a user's own encoding."""
    path = Path(word.rpartition(":")[0])
    if not path.is_file():
        raise typer.BadParameter(f"{word}: there is no file {path}", param_hint="--encodings")
    from posenc.lab.user_file import text_of

    try:
        return text_of(path, word)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--encodings") from None


def repeat(encodings: str | None, seed: int, text: Path | None) -> str:
    """The command that repeats the training on any machine. It gives steps, because the time depends on the machine."""
    options = ["--encodings", encodings] if encodings else []
    read = ["--text", text.resolve().name] if text else []
    return shlex.join(["posenc", "compare", *options]) + " --steps {steps} " + shlex.join(["--seed", str(seed), *read])
