"""Runs trials on workers. An engine takes trials in order, claims each just before it starts it, and yields its events.

    local     processes of this machine
    ray       tasks of a Ray cluster, repeated on another node if a node is lost

Events carry the number of the trial in the given list. A trial claimed by another sweep yields no event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.lab.engines.engine import Context as Context
from posenc.lab.engines.engine import Engine as Engine
from posenc.lab.engines.engine import finish as finish
from posenc.lab.engines.engine import finish_elsewhere as finish_elsewhere
from posenc.lab.engines.engine import line as line
from posenc.lab.engines.workers import Event as Event

if TYPE_CHECKING:
    from posenc.lab.engines.engine import Train as Train

NAMES = ("local", "ray")
NOT_INSTALLED = "ModuleNotFoundError: "  # the failure line of an encoding whose package is missing begins so
LATE = "not trained: the budget was over"  # the line of a trial that a budget left no time for


def named(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of that name. `address` is that of a Ray cluster.

    Raises ValueError for an unknown name, ModuleNotFoundError if the library that the engine needs is not installed.
    """
    if name == "local":
        from posenc.lab.engines.local import Local

        return Local(workers)
    if name == "ray":
        from posenc.lab.engines.ray_ import Ray

        return Ray(workers, address)
    raise ValueError(f"--engine: expected {', '.join(NAMES)}, got {name!r}")
