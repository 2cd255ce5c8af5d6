"""`posenc export-tables`: what an encoding adds, as arrays in a file for programs outside torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding

FORMATS = ("npz", "safetensors", "c")


def command(
    length: Annotated[int, typer.Option(min=1, help="Positions 0 … length-1.", show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An encoding by name; posenc list --all shows them.", show_default=False)
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(help="Instead of NAME: a config.json, a folder with one or a GGUF file.", show_default=False),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, help="Of --config; the first with an encoding if left out.", show_default=False)
    ] = None,
    form: Annotated[str, typer.Option("--format", help="npz, safetensors or c (a header).")] = "npz",
    out: Annotated[
        Path | None, typer.Option(help="The file; NAME.npz, NAME.safetensors or NAME.h if left out.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metadata as JSON.")] = False,
    d_model: Annotated[int | None, typer.Option(min=1, help="Channels.", show_default="512")] = None,
    n_heads: Annotated[
        int | None, typer.Option(min=1, help="Heads; d_head is d_model / n_heads.", show_default="8")
    ] = None,
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

    posenc export-tables --config my-model/ --length 32768 --out tables.npz

    posenc export-tables alibi --length 1024 --n-heads 32 --format c --out alibi.h

    posenc export-tables sinusoidal --length 512 --json
    """
    if form not in FORMATS:
        raise typer.BadParameter(f"expected one of {', '.join(FORMATS)}, got {form!r}", param_hint="--format")
    if bool(name) == (config is not None):
        raise typer.BadParameter(f"give one of the two, got {'both' if name else 'neither'}", param_hint="NAME, --config")
    options = {"d_model": d_model, "n_heads": n_heads, "base": base, "layout": layout}
    arguments = {key: value for key, value in options.items() if value is not None}
    try:
        if config is None:
            if layer is not None:
                raise typer.BadParameter("is that of a --config", param_hint="--layer")
            encoding = _named(name, length, arguments)
        elif arguments:
            raise typer.BadParameter("the configuration says it", param_hint=f"--{next(iter(arguments)).replace('_', '-')}")
        else:
            name, encoding = _of_config(config, layer, length)
        from posenc.pictures.exported_tables import SUFFIXES, exported_tables, write_tables

        tables = exported_tables(encoding, length, precision)  # type: ignore[arg-type]
    except (TypeError, ValueError, IndexError) as error:
        raise typer.BadParameter(str(error)) from error
    path = write_tables(tables, Path(f"{name}{SUFFIXES[form]}") if out is None else out, form, replace=force)  # type: ignore[arg-type, index]
    echo(f"wrote {path}", err=as_json)
    if as_json:
        shapes = {key: list(array.shape) for key, array in tables.arrays.items()}
        echo_json({"file": str(path), "shapes": shapes, **tables.metadata})


def _named(name: str, length: int, arguments: dict[str, Any]) -> PositionalEncoding:
    """An encoding of the catalogue, for a request of this length."""
    from posenc.catalogue.lookup import BY_NAME, create, hint, names
    from posenc.support.checks import shown

    if name not in names():
        raise typer.BadParameter(
            f"unknown encoding {shown(name)}{hint(name)}; posenc list --all shows all names", param_hint="NAME"
        )
    if "parameters" in BY_NAME[name].needs:
        raise typer.BadParameter(
            f"{name} is learned: there is no table before training; load your parameters in Python and call "
            "posenc.pictures.exported_tables.exported_tables(encoding, length)",
            param_hint="NAME",
        )
    encoding = create(name, **{"d_model": 512, "n_heads": 8} | arguments)
    return encoding.at_length(length) if BY_NAME[name].by_length else encoding


def _of_config(config: Path, layer: int | None, length: int) -> tuple[str, PositionalEncoding]:
    """The family, and the encoding of one layer of the part that generates text, for a request of this length."""
    from posenc.configs import spec_of
    from posenc.configs.report.report import main_part

    spec = spec_of(config)
    main = main_part(spec)
    part = spec if main is None else main[1]
    if layer is None:
        layer = next((number for number, candidate in enumerate(part.layers) if candidate.uses), 0)
    return spec.family, part.encoding(layer).at_length(length)
