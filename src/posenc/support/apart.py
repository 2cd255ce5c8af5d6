"""Runs a function that calls a user's code in a process of its own, so that nothing that the code does ends posenc.

    parent ── function, arguments ──► child
    parent ◄── NEWS …, and END or ERROR ── child

Whatever else ends the child gave no verdict: sys.exit, os._exit, a signal, a crash. So did a child that stays silent. The
code's prints go to the standard error; it reads nothing from the standard input. A child whose parent ends, ends too.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal, NoReturn

LIMIT = 300.0  # seconds
LOOK_AGAIN, GRACE = 0.2, 5.0  # seconds
KINDS = (ModuleNotFoundError, ValueError, TypeError, OSError, MemoryError)  # of errors that posenc's commands explain

Kind = Literal["news", "end", "error", "ended", "gone"]


class NoVerdict(ValueError):
    """The process ended, or was stopped, before it had answered. The message says how: `ends Python with sys.exit(0)`."""


def told(function: Callable[..., Iterator[Any]], *arguments: Any, limit: float = LIMIT) -> Iterator[Any]:
    """What the importable generator function yields, one after the other, as it arrives.

    limit   the longest silence in seconds; before the first news, in which Python starts and imports, at least LIMIT

    An Exception of the function is raised here again, as one of KINDS or as RuntimeError. Raises NoVerdict for any other
    end, and after the limit.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; from posenc.support.apart import serve; serve()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    answers: queue.SimpleQueue[tuple[Kind, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(process.stdout, answers), daemon=True).start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it ended; how is found below
            pickle.dump((function, arguments), process.stdin)
            process.stdin.flush()
        kind, value = _next(process, answers, max(limit, LIMIT))
        while kind == "news":
            yield value
            kind, value = _next(process, answers, limit)
        if kind == "gone":
            with contextlib.suppress(subprocess.TimeoutExpired):  # its pipe is closed before it has ended
                process.wait(GRACE)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
    if kind == "error":
        _raise(*value)
    if kind == "ended":
        raise NoVerdict(value)
    if kind == "gone":
        raise NoVerdict(f"ends its process with {_code(process.returncode)}")


def _next(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[tuple[Kind, Any]], limit: float) -> tuple[Kind, Any]:
    """The next answer. "gone" for a process that has ended, also while another that it left holds the pipe."""
    deadline = time.monotonic() + limit
    while True:
        over = process.poll() is not None
        try:
            return answers.get(timeout=LOOK_AGAIN)
        except queue.Empty:
            if over:
                return "gone", None
        if time.monotonic() > deadline:
            raise NoVerdict(f"gives no answer within {limit:g} s")


def _listen(stream: BinaryIO, answers: queue.SimpleQueue[tuple[Kind, Any]]) -> None:
    with stream:
        while True:
            try:
                answers.put(pickle.load(stream))
            except Exception:  # its end, or what is no answer
                answers.put(("gone", None))
                return


def _raise(number: int | None, message: str, name: str | None) -> NoReturn:
    kind = RuntimeError if number is None else KINDS[number]
    raise ModuleNotFoundError(message, name=name) if kind is ModuleNotFoundError else kind(message)


def _code(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


# In the child ---------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answers one call, and ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    request, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # as that of the standard error
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def answer(kind: Kind, value: Any = None) -> None:
        pickle.dump((kind, value), answers)
        answers.flush()

    function, arguments = pickle.load(request)
    threading.Thread(target=lambda: (request.read(), os._exit(1)), daemon=True).start()  # the parent has ended
    try:
        for news in function(*arguments):
            answer("news", news)
    except Exception as error:
        answer("error", _described(error))
    except SystemExit as end:
        answer("ended", f"ends Python with sys.exit({'' if end.code is None else end.code})")
    except BaseException as error:
        answer("ended", f"raises {type(error).__name__}: {error}".splitlines()[0].removesuffix(": "))
    else:
        answer("end")
    sys.stderr.flush()
    os._exit(0)  # without waiting for threads that the code has left


def _described(error: Exception) -> tuple[int | None, str, str | None]:
    number = next((number for number, kind in enumerate(KINDS) if isinstance(error, kind)), None)
    message = str(error) or type(error).__name__
    return number, message if number is not None else f"{type(error).__name__}: {message}", getattr(error, "name", None)
