"""`posenc show`: a picture of one encoding, in the terminal or as a file."""

from __future__ import annotations

import math
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from posenc.pictures.plots.picture import Picture

FORMATS = (".png", ".svg", ".pdf")
HEADS = "Number of heads; d_head is d_model / n_heads. Default: 1 for rotary encodings, else 4."


def command(
    method: Annotated[str, typer.Argument(help="An encoding by name; posenc list --all shows them.", show_default=False)],
    what: Annotated[
        str | None, typer.Option(help="Which picture; the encoding's first if left out.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write it to this .png, .svg or .pdf.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers of the picture.")] = False,
    play: Annotated[bool, typer.Option("--play", help="Let the rows of the heat map appear one by one.")] = False,
    speed: Annotated[float, typer.Option(min=0.1, max=100, help="For --play: rows a second.")] = 10.0,
    length: Annotated[int | None, typer.Option(min=1, help="Positions.", show_default=False)] = None,
    d_model: Annotated[int | None, typer.Option(min=1, max=4096, help="Channels.", show_default=False)] = None,
    n_heads: Annotated[int | None, typer.Option(min=1, max=64, help=HEADS, show_default=False)] = None,
    base: Annotated[float | None, typer.Option(help="Base of the frequencies.", show_default=False)] = None,
    lag: Annotated[
        float | None, typer.Option(help="For --what shift: the distance; 3 if left out.", show_default=False)
    ] = None,
) -> None:
    """Draw a picture of one encoding, in the terminal or to a file.

    In every picture blue is negative, white is zero and red is positive.

    [bold]--what[/bold] heatmap · bias · terms · waves · clock · wavelengths · angles · decay · shift · distance · path ·
    taylor · remainder · order; each encoding supports some of them.

    [bold]Examples[/bold]

    posenc show sinusoidal

    posenc show rope --what decay --out rope.png

    posenc show alibi --what bias --n-heads 8 --length 64 --out alibi.svg

    posenc show sinusoidal --play --speed 20

    posenc show sinusoidal --what wavelengths --d-model 512 --json
    """
    _check(method, out, force, base, lag, what)
    from posenc.pictures.plots.views import VIEWS, Request, methods_of, picture_of, views_of

    views = views_of(method)
    what = views[0] if what is None else what
    if what not in views:
        why = f"does not suit {method}; it is for {', '.join(methods_of(what))}" if what in VIEWS else "is no picture"
        raise typer.BadParameter(f"{what!r} {why}. {method} has {', '.join(views)}", param_hint="--what")
    if play and (what != "heatmap" or out is not None or as_json):
        raise typer.BadParameter("plays the heat map in the terminal; leave --out and --json out", param_hint="--play")
    request = Request(length=length, d_model=d_model, n_heads=n_heads, base=base, lag=3.0 if lag is None else lag)
    try:
        picture, sizes = picture_of(method, what, request)
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from error
    except ArithmeticError as error:
        raise typer.BadParameter(f"{base} is out of range for floating-point numbers", param_hint="--base") from error

    if play:
        _play(lambda rows: picture_of(method, what, replace(request, length=rows))[0], sizes.length, speed)
        return
    if out is not None:
        _write(picture, out)
        echo(f"wrote {out}", err=as_json)
    if as_json:
        about = {"method": method, "what": what, "length": sizes.length, "d_model": sizes.d_model, "n_heads": sizes.n_heads}
        echo_json(about | picture.data())
    elif out is None:
        _print(picture)


def _check(method: str, out: Path | None, force: bool, base: float | None, lag: float | None, what: str | None) -> None:
    """Checks the options that need no torch. Raises BadParameter or an OSError."""
    from posenc.catalogue.lookup import BY_NAME, hint, names
    from posenc.support.checks import shown

    if method not in names():
        raise typer.BadParameter(
            f"unknown encoding {shown(method)}{hint(method)}; posenc list --all shows all names", param_hint="METHOD"
        )
    if not BY_NAME[method].in_a_row:
        raise typer.BadParameter(
            f"{method!r}: there are pictures of encodings of words in a row, one layer, that read no hidden states; "
            f"posenc list {method} {'draws its layers' if BY_NAME[method].kind == 'preset' else 'describes it'}",
            param_hint="METHOD",
        )
    if base is not None and not (math.isfinite(base) and base > 0):
        raise typer.BadParameter(f"expected a positive number such as 10000, got {base}", param_hint="--base")
    if lag is not None and (what != "shift" or not math.isfinite(lag)):
        raise typer.BadParameter(f"expected a finite number together with --what shift, got {lag}", param_hint="--lag")
    if out is None:
        return
    if out.suffix.lower() not in FORMATS:
        raise typer.BadParameter(f"{out}: expected a name that ends in {', '.join(FORMATS)}", param_hint="--out")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: there is no folder {out.parent}")
    if out.exists() and (out.is_dir() or not force):
        raise FileExistsError(f"--out {out}: is a folder" if out.is_dir() else f"--out {out}: exists; --force replaces it")


def _write(picture: Picture, out: Path) -> None:
    """Writes a temporary file in the same folder and renames it. An interrupted run leaves the old file intact."""
    from posenc.pictures.plots.figures import save

    try:
        handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.stem}-", suffix=out.suffix)
    except OSError as error:
        raise OSError(f"--out {out}: cannot write in {out.parent}: {error.strerror}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        save(picture, temporary)
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, out)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _play(picture: Callable[[int], Picture], length: int, speed: float) -> None:
    """Draws one row more each time, over the rows before; where nothing can move, only the last picture."""
    from rich.console import Console
    from rich.live import Live

    from posenc.pictures.plots.terminal import coloured, draw

    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        _print(picture(length))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for rows in range(1, length + 1):
            live.update(draw(picture(rows), console.width, colour=coloured(console)), refresh=True)
            time.sleep(1 / speed)


def _print(picture: Picture) -> None:
    from rich.console import Console

    from posenc.pictures.plots.terminal import coloured, draw

    console = Console(highlight=False, emoji=False)
    console.print(draw(picture, console.width, colour=coloured(console)), soft_wrap=True)
