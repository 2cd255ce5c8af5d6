"""How a long command ends when it is stopped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def interruptible(left: str) -> Iterator[None]:
    """Ctrl-C and kill end with exit code 130 and one line that says what is left; a second Ctrl-C cannot cut that short."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        typer.echo(f"posenc: interrupted; {left}", err=True)
        raise typer.Exit(130) from None
