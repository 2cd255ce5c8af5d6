"""The command line. A command is a module of the folder `commands` beside what it runs."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from posenc.support.extras import explained
from posenc.terminal.output import echo, print_any_text
from posenc.terminal.replaced import replacement

COMMANDS = {
    "compare": "Train encodings at one length, score them at longer ones, rank them on one screen and write a report.",
    "lab": "Experiments: train on short sequences, test on long ones, and report with every seed.",
    "bench": "Measure what encodings cost on this machine: time relative to no encoding, and memory.",
    "explore": "Open the interactive views of every encoding in a browser; offline, English and Chinese.",
    "list": "List the encodings: where each acts, its properties, the models that use it.",
    "choose": "Choose an encoding from a few answers; each with its reasons, measured or cited.",
    "show": "Draw a picture of one encoding, in the terminal or to a file.",
    "convert": "Convert a checkpoint to the other rotary layout, bit for bit.",
    "export-tables": "Write the tables of an encoding or a config.json to an npz, safetensors or C file.",
    "check": "Try the laws on anyone's implementation: which fail, on which input, and what it is.",
    "inspect": "Read a config.json: how the model uses positions, and what fails beyond its training length.",
    "compare-configs": "Compare how two models use positions; print where they first differ.",
    "walk": "Print what the founding notes describe, row by row, with figures and every worked example.",
    "claims": "Check the claims of the founding notes by computation, with a verdict for each.",
}
ROOMS = {
    "compare": "lab",
    "bench": "pictures",
    "explore": "explorer",
    "list": "catalogue",
    "choose": "configs",
    "show": "pictures",
    "convert": "configs",
    "export-tables": "configs",
    "check": "checking",
    "inspect": "configs",
    "compare-configs": "configs",
    "walk": "explorer",
    "claims": "learn",
}
"""Where the folder `commands` of each stands."""
LAB = {
    "run": "Train and score the missing trials of an experiment, then write its report.",
    "report": "Write the report of a folder again, from its results.",
    "list": "List the presets and tasks; with a folder, its trials and their scores.",
    "show": "Show one trial: settings, scores, training curve, times, versions.",
    "repeat": "Run one trial again and compare every score with the stored one.",
    "add": "Add your own encoding to a comparison, after it passes the laws it declares.",
    "score": "Score a trained model on longer and longer windows of a text, as it is and with its positions changed.",
    "publish": "Write one zip file with report, results, configuration and citation, for an archive or a paper.",
}
HELP = {"help_option_names": ["-h", "--help"]}
EPILOG = "Examples:  posenc compare --budget 2m   ·   posenc show rope --what decay --out rope.png   ·   posenc list --json"

LAB_EPILOG = "Examples:  posenc lab run quick   ·   posenc lab list   ·   posenc lab add mine.py:Mine --to lab-quick"


class LazyGroup(TyperGroup):
    """A command group that imports a command's module only when that command runs. --help needs only names and lines."""

    lines = COMMANDS
    rooms = ROOMS

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.lines)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.lines:
            return None
        return _command(cmd_name, lambda: None, self.lines[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if ctx.parent is None and (line := replacement(args)) is not None:
            ctx.fail(line)
        if name not in self.lines:
            return super().resolve_command(ctx, args)
        if name == "lab":
            return name, typer.main.get_command(lab), args[1:]
        function = importlib.import_module(f"posenc.{self.rooms[name]}.commands.{name.replace('-', '_')}").command
        return name, _command(name, function, function.__doc__), args[1:]


class LabGroup(LazyGroup):
    lines = LAB
    rooms = dict.fromkeys(LAB, "lab") | {"score": "transformers"}


class Command(TyperCommand):
    """A command whose errors begin with what was wrong: some versions of typer put "Value error, " before it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def _command(name: str, function: Callable[..., None], text: str | None) -> Any:
    app = typer.Typer(rich_markup_mode="rich", add_completion=False, context_settings=HELP)
    app.command(name=name, cls=Command, help=text)(function)
    return typer.main.get_command(app)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=EPILOG,
    context_settings=HELP,
)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False) -> None:
    """posenc: positional encodings for Transformers, compared, explained and tested."""
    if version:
        from posenc import __version__

        echo(__version__)
        raise typer.Exit


lab = typer.Typer(
    name="lab",
    cls=LabGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=LAB_EPILOG,
    context_settings=HELP,
)


@lab.callback()
def _lab() -> None:
    """Experiments: train on short sequences, test on long ones, and report with every seed."""


def run() -> None:
    """Runs the command line. Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted. Errors print one line."""
    print_any_text()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(_say("interrupted; finished results are kept", 130))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:
        sys.exit(_say(str(explained(error)), 1))
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        if os.environ.get("POSENC_TRACEBACK"):
            raise
        sys.exit(_say(str(error) or type(error).__name__, 1))


def _say(message: str, code: int) -> int:
    echo(f"posenc: {message}", err=True)
    return code
