"""`posenc inspect`: how a model's config.json encodes position, and what happens beyond its training length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from posenc.dialects import PositionSpec
    from posenc.inspection.extension import Extension

METHODS = "yarn, ntk, linear, llama3 or longrope; all of them by default."


def command(
    config: Annotated[
        str, typer.Argument(help="A config.json, a folder with one, or - for standard input.", show_default=False)
    ] = "",
    length: Annotated[int | None, typer.Option(min=1, help="What happens at this length.", show_default=False)] = None,
    extend_to: Annotated[int | None, typer.Option(min=1, help="New settings for this length.", show_default=False)] = None,
    method: Annotated[str, typer.Option(help=METHODS, show_default=False)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="New folder for report, fragments, plot.", show_default=False)] = None,
    weights: Annotated[Path | None, typer.Option(help="Safetensors: measures learned tables.", show_default=False)] = None,
    families: Annotated[bool, typer.Option("--families", help="List every known model type and its reader.")] = False,
) -> None:
    """How a model encodes position: encoding, base, scaling, layers, scales; what that means; remarks.

    Every model family of transformers 5.23 is supported: text, vision, speech and their combinations. Only the
    configuration is read. The exit code is 1 if a remark is an error.

    [bold]Examples[/bold]

    posenc inspect my-model/

    posenc inspect config.json --length 131072

    posenc inspect config.json --extend-to 131072 --method yarn --out longer/

    cat config.json | posenc inspect - --json
    """
    if families:
        _print_families(as_json)
        return
    if not config:
        raise typer.BadParameter("missing; give a config.json, a folder with one, or -", param_hint="CONFIG")
    from posenc.dialects import read_config, source
    from posenc.inspection.extension import METHODS as KNOWN
    from posenc.inspection.report import report

    if method and (method not in KNOWN or extend_to is None):
        known = f"expected one of {', '.join(KNOWN)}, together with --extend-to"
        raise typer.BadParameter(f"{known}; got {method!r}", param_hint="--method")
    if out is not None and out.exists():
        raise FileExistsError(f"--out {out}: exists; give a new folder")
    found = source.load(config)
    spec = read_config(found, defaults=True)
    data = report(spec, length)
    extensions = _extensions(found, spec, extend_to, (method,) if method else KNOWN)
    if extensions:
        data["extensions"] = [
            {
                "method": e.method,
                "factor": e.factor,
                "fragment": e.fragment,
                "note": e.note,
                "frequencies": list(e.after),
                "cos_sin_scale": e.after.cos_sin_scale,
            }
            for e in extensions
        ]
    if weights is not None:
        from posenc.inspection.tables import measured

        data["weights"] = measured(spec, weights)
    if out is not None:
        from posenc.inspection.folder import write

        write(out, data, extensions)
        typer.echo(f"wrote {out}", err=as_json)
    if as_json:
        typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))
    else:
        _print(data, extensions)
    if any(remark["grade"] == "error" for remark in data["remarks"]):
        raise typer.Exit(1)


def _print_families(as_json: bool) -> None:
    from posenc.dialects.family import reader_paths

    paths = reader_paths()
    width = max(map(len, paths))
    text = json.dumps(paths, indent=1) if as_json else "\n".join(f"{name:{width}}  {path}" for name, path in paths.items())
    typer.echo(text)


def _extensions(
    config: dict[str, Any], spec: PositionSpec, length: int | None, methods: tuple[str, ...]
) -> list[Extension]:
    """Extensions of the part of the model that reads text; fragments are nested as in the file."""
    if length is None:
        return []
    from posenc.inspection.extension import extend, extensible

    path, part = extensible(spec)
    return extend(config, part, length, methods, path)


def _print(data: dict[str, Any], extensions: list[Extension]) -> None:
    from rich.console import Console

    from posenc.inspection.page import show

    show(Console(highlight=False), data, extensions)
