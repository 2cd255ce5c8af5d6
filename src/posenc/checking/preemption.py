"""A thread switch at a chosen line, so that what two calls at once do to each other happens again in every run."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

MOST_POINTS = 16
PATIENCE = 0.5  # seconds that the interrupted call waits for the other; longer where the other waits for its lock
_FOREIGN = (os.path.dirname(torch.__file__), os.path.dirname(threading.__file__), os.path.dirname(__file__), "<")


def lines_of(call: Callable[[], Any]) -> list[int]:
    """Some of the numbers 0, 1, … of the lines of the implementation's Python that the call runs, evenly spaced."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    _traced(call, step)
    return sorted({round(n * (count - 1) / max(MOST_POINTS - 1, 1)) for n in range(MOST_POINTS)}) if count else []


def preempted(first: Callable[[], Any], second: Callable[[], Any], point: int) -> tuple[Any, Any]:
    """Results, or exceptions, of `first` and of `second`, which runs in another thread before line `point` of `first`."""
    results: list[Any] = [None, None]
    count = 0

    def run() -> None:
        try:
            results[1] = second()
        except BaseException as error:  # a thread would end by sys.exit() without a word
            results[1] = error

    thread = threading.Thread(target=run, daemon=True)

    def step() -> None:
        nonlocal count
        if count == point:
            thread.start()
            thread.join(PATIENCE)
        count += 1

    try:
        results[0] = _traced(first, step)
    except Exception as error:
        results[0] = error
    if thread.ident is None:
        thread.start()
    thread.join(20 * PATIENCE)
    if thread.is_alive():
        results[1] = TimeoutError("the second call waits for ever")
    return results[0], results[1]


def _traced(call: Callable[[], Any], step: Callable[[], None]) -> Any:
    """The call's result; `step` runs before each line of files other than torch's, Python's and these."""

    def of_frame(frame: Any, event: str, argument: Any) -> Any:
        return None if frame.f_code.co_filename.startswith(_FOREIGN) else of_line

    def of_line(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            before = sys.gettrace()
            sys.settrace(None)
            try:
                step()
            finally:
                sys.settrace(before)
        return of_line

    before = sys.gettrace()
    sys.settrace(of_frame)
    try:
        return call()
    finally:
        sys.settrace(before)
