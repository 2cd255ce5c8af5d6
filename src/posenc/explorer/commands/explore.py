"""`posenc explore`: serves the explorer on this machine, or exports it as one file."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.output import echo

if TYPE_CHECKING:
    from posenc.explorer.data import Data

PORT = 8421


def command(
    view: Annotated[
        str,
        typer.Argument(
            show_default=False,
            help="A view such as table, an encoding such as rope, a row of the notes such as S8, a link, or a folder of "
            "posenc lab run or posenc compare.",
        ),
    ] = "",
    position: Annotated[
        int | None, typer.Option(min=0, show_default=False, help="The position that the view shows first.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1024,
            max=65535,
            show_default=False,
            help=f"Port on this machine; {PORT}, or the next that is free, if left out.",
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            show_default=False,
            help="Write the page as one file that opens from disk, and stop. With a link it opens as that page "
            "stands, with the sentence that was typed.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --export if it exists.")] = False,
) -> None:
    """Open the interactive views of every encoding in a browser; nothing leaves this machine.

    All views are in English and Chinese. This installation computes the numbers; every view prints the Python that
    computes them.

    [bold]Examples[/bold]

    posenc explore

    posenc explore rope --position 7

    posenc explore --port 9000 --no-browser

    posenc explore --export posenc.html

    posenc explore 'order?sentence=我喜欢猫和狗' --export mine.html

    posenc explore posenc-compare
    """
    if export is not None and (port is not None or no_browser):
        raise typer.BadParameter(
            "writes a file and serves nothing; leave --port and --no-browser out", param_hint="--export"
        )
    if export is None and force:
        raise typer.BadParameter("is for --export", param_hint="--force")
    folder = _folder(view)
    if folder is not None and position is not None:
        raise typer.BadParameter(f"{view} is a folder of results, which have no single position", param_hint="--position")
    at = _address("measured" if folder else view, position)
    if export is None:
        _serve(port, no_browser, at, _results(folder))
    else:
        _written(export, force, lambda: _page(folder) if folder else _exported(at))


def _folder(view: str) -> Path | None:
    """The path, where that is what was given: a name of the explorer comes first."""
    from posenc.explorer.links import address
    from posenc.explorer.parameters import Refused

    try:
        address(view)
    except Refused:
        return Path(view) if "#" not in view and (Path(view).exists() or os.sep in view) else None
    return None


def _results(folder: Path | None) -> Data | None:
    if folder is None:
        return None
    from posenc.explorer.results import results

    return results(folder)[1]


def _page(folder: Path) -> bytes:
    from posenc.explorer.results import results
    from posenc.lab.report.page import page

    return page(results(folder)[0]).encode()


def _address(view: str, position: int | None) -> str:
    from posenc.explorer.links import address
    from posenc.explorer.parameters import Refused

    try:
        return address(view, position)
    except Refused as error:
        raise typer.BadParameter(str(error), param_hint="VIEW") from None


def _written(path: Path, force: bool, page: Callable[[], bytes]) -> None:
    """Writes the bytes of a page, after the name is found to be one that can be written."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{path} should end in .html, so that browsers open it", param_hint="--export")
    if path.is_dir() or (path.exists() and not force):
        raise typer.BadParameter(f"{path} exists; --force replaces it", param_hint="--export")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}", param_hint="--export")
    from posenc.lab.records.files import write

    written = page()
    write(path, written)
    echo(f"wrote {path}, {len(written) / 1e6:.1f} MB: open it in any browser")


def _exported(at: str) -> bytes:
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from posenc.explorer.export import encoded, exported
    from posenc.explorer.parameters import Refused

    torch.set_num_threads(1)  # sums round the same on every machine, so the file is reproducible
    console = Console(stderr=True, emoji=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("computing the views")
        try:
            return encoded(exported(lambda done, of: progress.update(task, completed=done, total=of), at))
        except Refused as error:
            raise typer.BadParameter(str(error), param_hint="VIEW") from None


def _serve(wanted_port: int | None, no_browser: bool, at: str = "", results: Data | None = None) -> None:
    import uvicorn

    from posenc.explorer.server import configured

    port, listening = _listening(wanted_port)
    address = f"http://127.0.0.1:{port}/{'#/' * bool(at)}{at}"  # a row too: #/S8 is #S8

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            echo(f"{address}   ·   Ctrl-C stops it")
            if not no_browser:  # in a thread: a browser that runs in the terminal blocks its caller
                threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()

    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how a server ends
        Server(configured(port, results)).run(sockets=[listening])


def _listening(wanted_port: int | None) -> tuple[int, socket.socket]:
    """A listening socket on the port of --port, which must be free, or on the first free port from 8421."""
    for port in [wanted_port] if wanted_port else range(PORT, PORT + 50):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere it would share a port that is in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen()  # from here on it is taken
        except OSError as error:
            listening.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
        else:
            return port, listening
    where = f"port {wanted_port} is" if wanted_port else f"ports {PORT} to {PORT + 49} are"
    raise OSError(f"{where} in use or not allowed; say another with --port")
