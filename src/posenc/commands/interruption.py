"""Ends a long command cleanly when it is interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def interruptible(left: str) -> Iterator[None]:
    """On Ctrl-C or kill, prints one line and exits with code 130. A second Ctrl-C is ignored meanwhile."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        typer.echo(f"posenc: interrupted; {left}", err=True)
        raise typer.Exit(130) from None
