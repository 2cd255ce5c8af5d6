"""The tasks that models of the lab are trained and scored on; one file per task, which generates its own data.

    tasks.load("copy")(length=10, lengths=(10, 20, 40)).training_batch(rows=32, random=generator)

Legend: b rows, t tokens.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posenc.lab.tasks.task import Task


def names() -> tuple[str, ...]:
    """The files that define a task, which is a class whose `name` is the name of the file. Imports none of them."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(file.stem for file in files if f'\n    name: Literal["{file.stem}"]' in file.read_text(encoding="utf-8"))


def load(name: str) -> type[Task]:
    """Raises ValueError for an unknown name."""
    if name not in names():
        raise ValueError(f"task: unknown name {name!r}; known: {', '.join(names())}")
    from posenc.lab.tasks.task import Task

    module = importlib.import_module(f"posenc.lab.tasks.{name}")
    own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    return next(one for one in own if issubclass(one, Task))
