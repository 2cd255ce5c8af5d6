"""The commands that `--help` shows as examples: each is parsed by the command that it names, and what it names exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from posenc import cli
from posenc.catalogue.lookup import BY_NAME
from posenc.lab.experiment import PRESETS

ROOT = Path(__file__).parent.parent
BEGINS = re.compile(r"^\s*(?:\[bold\])?Examples:?(?:\[/bold\])?", re.MULTILINE)


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words, groups too."""
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context) if hasattr(group, "list_commands") else ():
        _, found, _ = group.resolve_command(context, [name])
        yield from commands(found, (*path, name))


EVERY = dict(commands(typer.main.get_command(cli.app)))


def examples(command: Any) -> list[str]:
    texts = [text for text in (command.help, command.epilog) if text]
    shown = [text[found.end() :] for text in texts if (found := BEGINS.search(text))]
    parts = (part for text in shown for part in re.split(r"·|\n\s*\n", text))
    return [" ".join(part.split()) for part in parts if part.strip()]


SHOWN = sorted({(" ".join(path), one) for path, command in EVERY.items() for one in examples(command)})


def test_most_commands_show_examples():
    assert len({path for path, _ in SHOWN}) > 15
    assert len(SHOWN) > 40


@pytest.mark.parametrize(("where", "example"), SHOWN)
def test_an_example_is_a_command(where, example):
    program, *words = shlex.split(example.rpartition(" | ")[2])
    assert program == "posenc", f"{where} --help shows {example!r}"
    path = max((path for path in EVERY if tuple(words[: len(path)]) == path), key=len)
    given = words[len(path) :]
    EVERY[path].make_context(" ".join(path) or "posenc", list(given))
    if path == ("lab", "run") and given and not given[0].startswith("-"):
        assert given[0] in PRESETS or (ROOT / given[0]).is_file()
    if path in (("show",), ("bench",)) and given and not given[0].startswith("-"):
        assert given[0] in BY_NAME
