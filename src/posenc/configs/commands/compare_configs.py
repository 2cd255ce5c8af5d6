"""`posenc compare-configs`: compares how two models use positions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from posenc.terminal.output import echo, echo_json


def command(
    a: Annotated[str, typer.Argument(help="A config.json, a folder with one, a GGUF file, or - for standard input.")],
    b: Annotated[str, typer.Argument(help="The other one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Every difference as JSON.")] = False,
) -> None:
    """Compare how two models use positions: every difference, and the first position where outputs differ.

    GGUF files of architectures whose queries and keys llama.cpp permutes are compared as if they were not permuted. Outputs
    differ if a pair of channels of length 1, or a bias, differs by more than 0.001. What differs in the files and changes
    no position (trained lengths, defaults written out, other spellings, keys of something else) is listed after that. The
    exit code is 0 if the positions are the same, 1 otherwise, also if a file cannot be read.

    Examples:  posenc compare-configs base/ fine-tuned/   ·   posenc compare-configs model.gguf folder/
    """
    from posenc.configs.commands.inspect import each, read
    from posenc.configs.report.difference import differences, without_effect

    if a == b == "-":
        raise typer.BadParameter("only one of the two can be standard input", param_hint="B")
    first, second = each([a, b], read)
    if isinstance(first, str) or isinstance(second, str):
        raise typer.Exit(1)
    (file, spec), (other_file, other) = first, second
    differing, unfelt = differences(spec, other), without_effect(spec, other, file, other_file)
    if as_json:
        report = {
            name: [asdict(d) for d in listed] for name, listed in (("differences", differing), ("not_in_effect", unfelt))
        }
        echo_json({"same": not differing, **report})
        raise typer.Exit(1 if differing else 0)
    if not differing:
        echo("the same: all layers have the same positions")
    from rich.console import Console
    from rich.table import Table

    from posenc.terminal.wrapped import Wrapped

    console = Console(highlight=False, emoji=False)
    if differing:
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        for heading in ("where", "what", "parts at"):
            table.add_column(heading)
        for apart in differing:
            at = "" if apart.position is None else f"position {apart.position:,}"
            at += "" if apart.pair is None else f", pair {apart.pair}"
            table.add_row(apart.where or "the model", Wrapped(apart.what), at)
        console.print(table)
    if unfelt:
        console.print("differs in the file, not in effect:")
        for only in unfelt:
            console.print(Wrapped(f"  {f'{only.where}, ' if only.where else ''}{only.what}"))
    raise typer.Exit(1 if differing else 0)
