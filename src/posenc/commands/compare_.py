"""`posenc compare`: train, measure and compare on real text, with a table in the terminal and a page as a file."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.commands.interruption import interruptible
from posenc.commands.progress import WORDS, clock, in_lines

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.lab.compare import Progress

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def command(
    text: Annotated[Path | None, typer.Option(help="A file or folder of text instead.", show_default=False)] = None,
    encodings: Annotated[
        str | None,
        typer.Option(
            help="Some of them, with commas between; NAME+randomized trains at random positions.", show_default=False
        ),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time for the whole: 90s, 5m, 1h. More time, more training.")] = "5m",
    out: Annotated[Path, typer.Option(help="Folder for the page and the results.")] = Path("posenc-compare"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The first of two seeds.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="This many training steps, however long they take.", show_default=False)
    ] = None,
) -> None:
    """Which encoding, and why: every encoding trained on real text at one length and scored at up to eight times that.

    Measures what each makes of word order, its exact properties, its cost on this machine, and how far beyond the trained
    length it still predicts. The text is the Python standard library's own sources unless --text names another. Writes
    index.html, summary.png and results.json. Interrupted, it keeps what is finished; the same command goes on from there.

    Examples:  posenc compare   ·   posenc compare --text book.txt --budget 20m   ·   posenc compare --encodings rope,alibi
    """
    seconds = parse_budget(budget)
    resumable = f"--out {out}"
    with interruptible(f"what was finished is kept ({resumable}): the same command goes on from there"):
        from posenc.lab.compare import Request, compare

        arms = chosen(encodings)
        from rich.console import Console

        quiet, loud = Console(stderr=True, highlight=False), Console(highlight=False)
        request = Request(arms, out, text=text, seconds=None if steps else seconds, steps=steps, seed=seed)
        with shown(quiet) as progress:
            done = compare(request, progress)
        report(done, out, as_json, loud, quiet)


def parse_budget(budget: str) -> float:
    """Seconds. Raises BadParameter for anything but a positive number and a unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", budget.strip())
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise typer.BadParameter(f"expected a time such as 90s, 5m or 1h, got {budget!r}", param_hint="--budget")
    return seconds


def chosen(encodings: str | None) -> tuple[Any, ...]:
    from posenc.lab.experiment.arm import DEFAULT, Arm

    words = list(DEFAULT) if encodings is None else [word.strip() for word in encodings.split(",")]
    if not all(words) or len(set(words)) < len(words):
        raise typer.BadParameter(
            f"expected different names with commas between, got {encodings!r}", param_hint="--encodings"
        )
    try:
        return tuple(Arm.parse(word) for word in words)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--encodings") from error


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """A bar with the time left; a line for every change of stage where nobody watches."""
    if not console.is_terminal:
        yield in_lines(console, "compare")
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn(WORDS), console=console, transient=True) as bar:
        task = bar.add_task("reading the text", total=None, left="")

        def update(what: str, so_far: float, left: float) -> None:
            bar.update(task, description=what, completed=so_far, total=so_far + left, left=clock(left))

        yield update


def report(done: dict[str, Any], out: Path, as_json: bool, loud: Console, quiet: Console) -> None:
    from posenc.lab.summary import sentences
    from posenc.lab.table import show
    from posenc.lab.verdict import failed

    if as_json:
        json.dump(done, sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        show(done, loud)
        for sentence in sentences(done):
            loud.print(f"· {sentence.en}", soft_wrap=False)
        loud.print(f"{out / 'index.html'}  results.json  summary.png", style="bold", soft_wrap=True)
    if broken := failed(done):
        quiet.print(f"posenc: {len(broken)} of {len(done['rows'])} failed: {', '.join(broken)}", soft_wrap=True)
        raise typer.Exit(1)
