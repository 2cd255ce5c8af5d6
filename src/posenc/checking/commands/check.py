"""`posenc check`: the laws on anyone's implementation, and what formula a table of numbers follows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.checking.say import say
from posenc.support import strict_json
from posenc.support.apart import LIMIT, NoVerdict, told
from posenc.support.languages import Words, default_language
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from posenc.checking import Report

Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="How long one law may take before the code counts as hung.")
]
SUFFIXES = (".npy", ".csv", ".tsv", ".txt", ".json", ".safetensors")  # of tables
MARKS = {"good": "✓", "note": "·", "wrong": "✗"}
SEAMS = "rotate, embed, table, bias or attention."


def _list_laws(wanted: bool) -> None:
    """Prints every law, what it is tried on, and its sentence."""
    if not wanted:
        return
    from posenc.checking import checking, laws  # noqa: F401 (they add their laws to the table)
    from posenc.checking.table import rows

    for name, kinds, sentence in rows():
        echo(f"{name} ({', '.join(kinds)})\n    {sentence.in_language(chosen_language(''))}")
    raise typer.Exit


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:NAME] | TABLE",
            help="Or package.module:attribute. TABLE: .npy, .csv, .tsv, .txt, .json, .safetensors.",
            show_default=False,
        ),
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
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for what is unusual, too.")] = False,
    timeout: Timeout = LIMIT,
    laws: Annotated[
        bool,
        typer.Option(
            "--laws", help="Print every law of encodings and callables, and exit.", is_eager=True, callback=_list_laws
        ),
    ] = False,
) -> None:
    """Try the laws of position on an implementation, and identify its layout, base, scaling, slopes or buckets.

    Of a TABLE of numbers, positions by channels, it finds layout, base, first position, precision and known errors.
    Nothing in a table's file is executed; a pickle is not read.

    The file is executed, in a process of its own; what it prints goes to the standard error. A class is made without
    arguments, and a function without arguments is called for what it builds: modules with transformers' forward(x,
    position_ids) -> (cos, sin) or torchtune's forward(x, input_pos=…) are known by them. Functions write(cache, k, v,
    positions), read(cache) and crop(cache, lengths) are a cache, tried by the laws of caches. The function is called with
    PyTorch tensors, or NumPy arrays: rotate(x, positions), embed(x, positions), table(positions), bias(q_positions,
    k_positions) or attention(q, k, v, q_positions, k_positions); in place of positions it may take offset=n or a length.
    Exit codes: 0 passed, or unusual: it keeps every law and is nothing known; 1 a law failed, or the code ended Python,
    crashed or hung, or the table has an error, or with --strict it is unusual; 2 wrong usage.

    Examples:  posenc check my_rope.py   ·   posenc check pe.npy   ·   posenc check my_rope.py:rotate --expect base=10000
    """
    if target.lower().endswith(SUFFIXES):
        if given := [name for name, value in (("--as", seam), ("--expect", expect), ("--without", without)) if value]:
            raise typer.BadParameter("is for code; a table takes --json and --strict", param_hint=given[0])
        raise typer.Exit(_table(Path(target), as_json, strict))
    lacking = [trait.strip() for trait in without.split(",") if trait.strip()]
    about = {"name": target, "without": lacking, "expect": _facts(expect), "seed": seed}
    doing, text, verdict = "before it is loaded", "", "failed"
    try:
        for news in told(steps, target, seam, {"width": width, "n_heads": heads}, about, verbose, as_json, limit=timeout):
            if isinstance(news, str):
                doing = news
            else:
                text, verdict = news
    except NoVerdict as error:
        raise ValueError(f"{target}: the code {error}, {doing}") from None
    except ValueError as error:  # Unusable is one: not even the plainest call works
        hint = None if str(error).startswith("--") else "FILE.py[:NAME]"
        raise typer.BadParameter(str(error), param_hint=hint) from error
    if as_json:
        echo_json(json.loads(text))
    else:
        chosen_language("")
        echo(text)
    raise typer.Exit(0 if verdict == "passed" or (verdict == "unusual" and not strict) else 1)


def steps(
    target: str, seam: str, sizes: dict[str, Any], about: dict[str, Any], verbose: bool, as_json: bool
) -> Iterator[str | tuple[str, str]]:
    """The steps of `posenc.check` on the implementation, in the process that may run its code.

    What is done next, such as "at NAME" of a law; at the end the text to print, and the verdict.
    """
    from posenc.checking import caches, checking
    from posenc.checking.loading import CACHE, load
    from posenc.checking.loading import SEAMS as KNOWN
    from posenc.checking.subject import TRAITS

    if seam and seam not in KNOWN:
        raise ValueError(f"--as: expected one of {', '.join(KNOWN)}; got {seam!r}")
    if unknown := [trait for trait in about["without"] if trait not in TRAITS]:
        raise ValueError(f"--without: expected some of {', '.join(sorted(TRAITS))}; got {unknown[0]!r}")
    yield "while it is loaded"
    kind, function = load(target, seam or None)
    yield "at its first call"
    encoding = function if kind == "encoding" else None
    if kind == CACHE:
        if given := [f"--{option}" for option in ("without", "expect") if about[option]]:
            raise ValueError(f"{given[0]}: a cache has no traits and no facts; leave it out")
        stages = caches.steps(function, about["name"])
    else:
        stages = checking.steps(encoding, {kind: function} if encoding is None else {}, sizes, **about)
    for news in stages:
        yield f"at {news}" if isinstance(news, str) else (_printed(news, verbose, as_json), news.verdict)


def _printed(report: Report, verbose: bool, as_json: bool) -> str:
    if as_json:
        return report.to_json()
    language = default_language()
    return "\n".join([*report.head(language), *report.lines(passed=verbose), *report.end(language)])


def _table(path: Path, as_json: bool, strict: bool) -> int:
    """Prints what a table of numbers is; the exit code."""
    from posenc.checking.errors import NoTable
    from posenc.checking.recognition import recognise
    from posenc.checking.table_files import read_file

    language = chosen_language("")
    try:
        table = read_file(path)
        found = recognise(table)
    except NoTable as error:
        raise typer.BadParameter(error.words.in_language(language), param_hint=str(path)) from None
    except (OSError, ValueError) as error:
        raise typer.BadParameter(getattr(error, "strerror", None) or str(error), param_hint=str(path)) from None
    python = found.python and f"import posenc\nimport torch\n\n{found.python}"
    wrong = sum(one.level == "wrong" for one in found.findings)
    if as_json:
        echo_json(
            {
                "table": str(path),
                "shape": table.shape,
                "dtype": found.dtype,
                "formula": None if found.formula is None else asdict(found.formula),
                "arithmetic": found.arithmetic,
                "transposed": found.transposed,
                "residual": found.residual,
                "at": found.at,
                "silent": found.silent,
                "findings": [{"level": one.level, **one.words.as_dict()} for one in found.findings],
                "python": python,
            }
        )
    else:
        precise = say("recognised, no errors") if found.arithmetic == "exact" else say("recognised; some precision is lost")
        what = say("recognised, errors: {count}", count=wrong) if wrong else precise
        what = what if found.formula else say("not recognised as sinusoidal")
        rows, channels = (n for n in table.shape if n > 1 or table.ndim == 2)
        told: dict[str, Any] = {"name": path.name, "rows": rows, "channels": channels, "dtype": found.dtype, "what": what}
        lines = [say("{name} · {rows} × {channels}, {dtype} · {what}", **told)]
        lines += [
            Words(f"{MARKS[one.level]} {one.words.en}", f"{MARKS[one.level]} {one.words.zh}") for one in found.findings
        ]
        if found.at and found.residual:
            row, column = found.at
            at: dict[str, Any] = {"residual": f"{found.residual:.2g}", "row": row, "column": column}
            lines += [say("Largest difference {residual} at row {row}, column {column}.", **at)]
        echo("\n".join([*(line.in_language(language) for line in lines), *([f"\n{python}"] if python else [])]))
    return int(wrong > 0 or (strict and found.formula is None))


def _facts(text: str) -> dict[str, Any]:
    """ "layout=half,base=10000" or "slopes=[0.0625,0.0039]" as a mapping; values are JSON where they are, else words."""
    facts: dict[str, Any] = {}
    for fact in filter(None, (part.strip() for part in re.split(r",(?![^\[]*\])", text))):
        name, equals, value = fact.partition("=")
        if not equals or not name or not value:
            raise typer.BadParameter(f"expected NAME=VALUE, got {fact!r}", param_hint="--expect")
        try:
            facts[name] = strict_json.loads(value.encode())
        except ValueError:
            facts[name] = value
    return facts
