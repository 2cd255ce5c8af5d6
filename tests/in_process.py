"""The posenc command in the process of the tests: as `python -m posenc`, without the seconds that Python and torch take."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from posenc import cli
from posenc.support import apart


def posenc(
    *arguments: str | Path, cwd: Path | None = None, encoding: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """What the command prints to its two outputs, and its exit code. Signal handlers and folder are as before.

    encoding   of the two outputs, as PYTHONIOENCODING sets it; a command that changes it is read in what it changed to
    """
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    given = [str(argument) for argument in arguments]
    out, err = (
        (io.TextIOWrapper(io.BytesIO(), encoding, "strict"), io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace"))
        if encoding
        else (io.StringIO(), io.StringIO())
    )
    code: object = 0
    with (
        contextlib.ExitStack() as stack,
        mock.patch("sys.argv", ["posenc", *given]),
        mock.patch.dict(os.environ, {"COLUMNS": "120", "NO_COLOR": "1", **environment}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        if cwd is not None:
            stack.enter_context(contextlib.chdir(cwd))
        try:
            cli.run()
        except SystemExit as end:
            code = end.code or 0
        finally:
            for one, handler in handlers.items():
                signal.signal(one, handler)
    return subprocess.CompletedProcess(["posenc", *given], int(str(code)), _printed(out), _printed(err))


def _printed(output: io.StringIO | io.TextIOWrapper) -> str:
    if isinstance(output, io.StringIO):
        return output.getvalue()
    output.flush()
    return output.buffer.getvalue().decode(output.encoding)  # type: ignore[attr-defined]


def told(function: Callable[..., Iterator[Any]], *arguments: Any, limit: float = 0.0) -> Iterator[Any]:
    """`posenc.support.apart.told` without a process of its own, for the fixture `foreign_code_here`."""
    running = function(*arguments)
    while True:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                news = next(running)
        except StopIteration:
            return
        except SystemExit as end:
            raise apart.NoVerdict(f"ends Python with sys.exit({'' if end.code is None else end.code})") from None
        except Exception as error:
            apart._raise(*apart._described(error))
        yield news
