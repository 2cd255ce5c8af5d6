"""`posenc check`: the laws on anyone's implementation."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

SEAMS = "rotate, embed, table, bias or attention."


def command(
    target: Annotated[
        str, typer.Argument(metavar="FILE.py[:NAME]", help="Or package.module:attribute.", show_default=False)
    ],
    seam: Annotated[str, typer.Option("--as", metavar="SEAM", help=SEAMS, show_default=False)] = "",
    expect: Annotated[
        str, typer.Option(metavar="FACTS", help="What it must be: layout=half,base=10000", show_default=False)
    ] = "",
    without: Annotated[
        str, typer.Option(metavar="TRAITS", help="What it lacks by design: shift_invariant,causal", show_default=False)
    ] = "",
    width: Annotated[int | None, typer.Option(min=1, help="Channels of a head, or of a token.", show_default=False)] = None,
    heads: Annotated[int, typer.Option(min=1, help="Query heads.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of the tokens.")] = 0,
    verbose: Annotated[bool, typer.Option("--all", help="Print the laws that pass too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Try the laws of position on an implementation, and identify its layout, base, scaling, slopes or buckets.

    The file is executed. A class is made without arguments. The function is called with PyTorch tensors, or NumPy arrays:
    rotate(x, positions), embed(x, positions), table(positions), bias(q_positions, k_positions) or
    attention(q, k, v, q_positions, k_positions). Exit codes: 0 passed, 1 a law failed, 2 wrong usage.

    Examples:  posenc check my_rope.py   ·   posenc check my_package.rope:rotate --as rotate --expect layout=half,base=10000
    """
    from posenc.conformance import check
    from posenc.conformance.loading import SEAMS as KNOWN
    from posenc.conformance.loading import load
    from posenc.conformance.subject import TRAITS

    if seam and seam not in KNOWN:
        raise typer.BadParameter(f"expected one of {', '.join(KNOWN)}; got {seam!r}", param_hint="--as")
    lacking = [one.strip() for one in without.split(",") if one.strip()]
    if unknown := [one for one in lacking if one not in TRAITS]:
        raise typer.BadParameter(
            f"expected some of {', '.join(sorted(TRAITS))}; got {unknown[0]!r}", param_hint="--without"
        )
    try:
        found, function = load(target, seam or None)
        report = check(
            **{found: function}, name=target, width=width, n_heads=heads, without=lacking, expect=_facts(expect), seed=seed
        )
    except ValueError as error:  # Unusable is one: not even the plainest call works
        raise typer.BadParameter(str(error), param_hint="FILE.py[:NAME]") from error
    if as_json:
        typer.echo(report.to_json())
    else:
        shown = [result for result in report.results if verbose or result.verdict != "passed"]
        lines = str(report).splitlines()[:2]
        typer.echo("\n".join([*lines, *map(str, shown)]))
    raise typer.Exit(0 if report.passed else 1)


def _facts(text: str) -> dict[str, Any]:
    """ "layout=half,base=10000" or "slopes=[0.0625,0.0039]" as a mapping; values are JSON where they are, else words."""
    facts: dict[str, Any] = {}
    for one in filter(None, (part.strip() for part in re.split(r",(?![^\[]*\])", text))):
        name, equals, value = one.partition("=")
        if not equals or not name or not value:
            raise typer.BadParameter(f"expected NAME=VALUE, got {one!r}", param_hint="--expect")
        try:
            facts[name] = json.loads(value)
        except json.JSONDecodeError:
            facts[name] = value
    return facts
