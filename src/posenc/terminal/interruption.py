"""Ends a long command cleanly when it is interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from posenc.terminal.output import echo


@contextmanager
def interruptible(left: str) -> Iterator[Callable[[], None]]:
    """On Ctrl-C or kill, prints one line and exits with code 130. A second Ctrl-C is ignored meanwhile.

    Yields a function that raises KeyboardInterrupt if a signal has arrived. Python drops the exception of a signal handler
    that runs inside a finaliser or a weak reference's callback, so a long loop calls this function at each round.
    """
    arrived = False

    def stop(*_: object) -> None:
        nonlocal arrived
        arrived = True
        raise KeyboardInterrupt

    def look() -> None:
        if arrived:
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    try:
        yield look
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        echo(f"posenc: interrupted; {left}", err=True)
        raise typer.Exit(130) from None
