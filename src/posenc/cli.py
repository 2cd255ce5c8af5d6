"""The command line: one line per command; the commands live in posenc/commands."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "compare": "Which encoding, and why: train, measure and compare on real text.",
    "list": "Every encoding: where it acts, what holds for it, who uses it.",
    "show": "A picture of one encoding, in the terminal or as a file.",
    "walk": "The worked sums of the founding notes, every matrix on the way.",
    "claims": "What the founding notes claim, computed, with a verdict.",
}
EPILOG = "Examples:  posenc compare --budget 2m   ·   posenc show rope --what decay --out rope.png   ·   posenc list --json"


class LazyGroup(TyperGroup):
    """Loads a command's file when that command is asked for, so that --help loads none."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or cmd_name not in sys.argv[1:]:
            return typer.main.get_command(_stub(cmd_name))
        module = importlib.import_module(f"posenc.commands.{cmd_name}_")
        app = typer.Typer(rich_markup_mode="rich", add_completion=False)
        app.command(name=cmd_name, help=module.command.__doc__)(module.command)
        return typer.main.get_command(app)


def _stub(name: str) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command(name=name, help=COMMANDS[name])(lambda: None)
    return app


app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True, rich_markup_mode="rich",
                  epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip


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
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        if os.environ.get("POSENC_TRACEBACK"):
            raise
        sys.exit(_say(str(error), 1))


def _say(message: str, code: int) -> int:
    print(f"posenc: {message}", file=sys.stderr)
    return code
