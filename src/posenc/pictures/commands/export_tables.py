"""`posenc export-tables`: what an encoding adds, as arrays in a file for programs outside torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

FORMATS = ("npz", "safetensors", "c")


def command(
    name: Annotated[str, typer.Argument(help="An encoding by name; posenc list shows them.", show_default=False)],
    length: Annotated[int, typer.Option(min=1, help="Positions 0 … length-1.", show_default=False)],
    form: Annotated[str, typer.Option("--format", help="npz, safetensors or c (a header).")] = "npz",
    out: Annotated[
        Path | None, typer.Option(help="The file; NAME.npz, NAME.safetensors or NAME.h if left out.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metadata as JSON.")] = False,
    d_model: Annotated[int, typer.Option(min=1, help="Channels.")] = 512,
    n_heads: Annotated[int, typer.Option(min=1, help="Heads; d_head is d_model / n_heads.")] = 8,
    base: Annotated[float | None, typer.Option(help="Base of the frequencies.", show_default=False)] = None,
    layout: Annotated[
        str | None, typer.Option(help="Which channels make a pair, as the encoding names it.", show_default=False)
    ] = None,
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
) -> None:
    """Write the tables of an encoding to a file: cos and sin, the addend of every position, or the bias of every distance.

    Computed in fp64, rounded once. Layout, base, axes and units are in the file's metadata. Learned encodings have no table
    before training: load your parameters in Python and call exported_tables(encoding, length) of
    posenc.pictures.exported_tables.

    [bold]Examples[/bold]

    posenc export-tables rope --length 4096 --format safetensors --layout half --base 500000

    posenc export-tables alibi --length 1024 --n-heads 32 --format c --out alibi.h

    posenc export-tables sinusoidal --length 512 --json
    """
    from posenc.catalogue.lookup import BY_NAME, hint, names

    if name not in names():
        raise typer.BadParameter(f"unknown encoding {name!r}{hint(name)}; posenc list shows all names", param_hint="NAME")
    if form not in FORMATS:
        raise typer.BadParameter(f"expected one of {', '.join(FORMATS)}, got {form!r}", param_hint="--format")
    if "parameters" in BY_NAME[name].needs:
        raise typer.BadParameter(
            f"{name} is learned: there is no table before training; load your parameters in Python and call "
            "posenc.pictures.exported_tables.exported_tables(encoding, length)",
            param_hint="NAME",
        )
    from posenc.catalogue.lookup import create
    from posenc.pictures.exported_tables import SUFFIXES, exported_tables, write_tables

    options = {key: value for key, value in (("base", base), ("layout", layout)) if value is not None}
    try:
        encoding = create(name, d_model=d_model, n_heads=n_heads, **options)  # type: ignore[arg-type]
        encoding = encoding.at_length(length) if BY_NAME[name].by_length else encoding
        tables = exported_tables(encoding, length, precision)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    path = write_tables(tables, Path(f"{name}{SUFFIXES[form]}") if out is None else out, form, replace=force)  # type: ignore[arg-type, index]
    typer.echo(f"wrote {path}", err=as_json)
    if as_json:
        shapes = {key: list(array.shape) for key, array in tables.arrays.items()}
        typer.echo(json.dumps({"file": str(path), "shapes": shapes, **tables.metadata}, ensure_ascii=False))
