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
    "bench": "Right, and how fast: ours beside the floor and every installed peer.",
    "list": "Every encoding: where it acts, what holds for it, who uses it.",
    "show": "A picture of one encoding, in the terminal or as a file.",
    "convert": "A checkpoint in the other rotary layout, bit for bit.",
    "inspect": "What a model's config.json does with position, and what breaks beyond its training length.",
    "compare-configs": "Are the positions of two models the same? If not, where they first differ.",
    "walk": "The worked sums of the founding notes, every matrix on the way.",
    "claims": "What the founding notes claim, computed, with a verdict.",
}
HELP = {"help_option_names": ["-h", "--help"]}
EXTRAS = {"matplotlib": "plots", "torchdiffeq": "floater", "safetensors": "convert"}
EPILOG = "Examples:  posenc compare --budget 2m   ·   posenc show rope --what decay --out rope.png   ·   posenc list --json"


class LazyGroup(TyperGroup):
    """Loads a command's file when that command runs; for the list in --help a name and a line are enough."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return _command(cmd_name, lambda: None, COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in COMMANDS:
            return super().resolve_command(ctx, args)
        function = importlib.import_module(f"posenc.commands.{args[0].replace('-', '_')}_").command
        return args[0], _command(args[0], function, function.__doc__), args[1:]


def _command(name: str, function: Callable[..., None], text: str | None) -> Any:
    one = typer.Typer(rich_markup_mode="rich", add_completion=False, context_settings=HELP)
    one.command(name=name, help=text)(function)
    return typer.main.get_command(one)


app = typer.Typer(
    cls=LazyGroup, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    epilog=EPILOG, context_settings=HELP,
)  # fmt: skip


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False) -> None:
    """posenc: positional encodings for Transformers, compared, explained and proven."""
    if version:
        from posenc import __version__

        typer.echo(__version__)
        raise typer.Exit


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
