"""The command line: one line per command; the commands live in posenc/commands."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "compare": "Which encoding, and why: train, measure and compare on real text.",
    "lab": "Train short, test long: experiments that a reviewer would accept and anyone can repeat.",
    "bench": "Right, and how fast: ours beside the floor and every installed peer.",
    "explore": "See, touch and compare every encoding, in a browser; offline, English and Chinese.",
    "list": "Every encoding: where it acts, what holds for it, who uses it.",
    "show": "A picture of one encoding, in the terminal or as a file.",
    "convert": "A checkpoint in the other rotary layout, bit for bit.",
    "inspect": "What a model's config.json does with position, and what breaks beyond its training length.",
    "compare-configs": "Are the positions of two models the same? If not, where they first differ.",
    "walk": "The worked sums of the founding notes, every matrix on the way.",
    "claims": "What the founding notes claim, computed, with a verdict.",
}
LAB = {
    "run": "Train and score what is missing of an experiment; then the report.",
    "report": "The report of a folder anew, from its results.",
    "list": "The presets and tasks; with a folder, its trials and their scores.",
    "show": "One trial: settings, scores, training curve, times, versions.",
    "verify": "Are results of other code still what this code computes? A sample is run again.",
    "add": "Your own encoding in the same comparison, once it obeys the laws it declares.",
}
HELP = {"help_option_names": ["-h", "--help"]}
EXTRAS = {
    "matplotlib": "plots",
    "torchdiffeq": "floater",
    "safetensors": "convert",
    "ray": "ray",
    "submitit": "slurm",
    **dict.fromkeys(("starlette", "uvicorn"), "explore"),
    "anywidget": "notebook",
    **dict.fromkeys(("pydantic", "yaml", "lightning_fabric", "pyarrow", "duckdb", "scipy"), "lab"),
}
EPILOG = "Examples:  posenc compare --budget 2m   ·   posenc show rope --what decay --out rope.png   ·   posenc list --json"

LAB_EPILOG = "Examples:  posenc lab run quick   ·   posenc lab list   ·   posenc lab add mine.py:Mine --to lab-quick"


class LazyGroup(TyperGroup):
    """Loads a command's file when that command runs; for the list in --help a name and a line are enough."""

    lines = COMMANDS
    module = "posenc.commands.{}_"

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.lines)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.lines:
            return None
        return _command(cmd_name, lambda: None, self.lines[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.lines:
            return super().resolve_command(ctx, args)
        if name == "lab":
            return name, typer.main.get_command(lab), args[1:]
        function = importlib.import_module(self.module.format(name.replace("-", "_"))).command
        return name, _command(name, function, function.__doc__), args[1:]


class LabGroup(LazyGroup):
    lines = LAB
    module = "posenc.commands.lab_{}"


def _command(name: str, function: Callable[..., None], text: str | None) -> Any:
    one = typer.Typer(rich_markup_mode="rich", add_completion=False, context_settings=HELP)
    one.command(name=name, help=text)(function)
    return typer.main.get_command(one)


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
    """posenc: positional encodings for Transformers, compared, explained and proven."""
    if version:
        from posenc import __version__

        typer.echo(__version__)
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
    """Train short, test long: experiments that a reviewer would accept and anyone can repeat."""


def run() -> None:
    """Exit code 0 done, 1 failed, 2 used wrongly, 130 interrupted; one line for each, never a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(_say("interrupted; what was finished is kept", 130))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        sys.exit(_say(f"this needs {error.name}: pip install 'posenc[{extra}]'" if extra else str(error), 1))
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        if os.environ.get("POSENC_TRACEBACK"):
            raise
        sys.exit(_say(str(error) or type(error).__name__, 1))


def _say(message: str, code: int) -> int:
    print(f"posenc: {message}", file=sys.stderr)
    return code
