"""The tasks that models of the lab are trained and scored on; one file per task, which generates its own data.

    tasks.load("copy")(length=10, lengths=(10, 20, 40)).training_batch(rows=32, random=generator)

Legend: b rows, t tokens.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab import user_file
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.lab.tasks.task import Task

CLASS, LINES = ".py:", ".jsonl"  # in the names of tasks from files
EXAMPLES = "examples"  # the module of a task of lines
GONE = ("actions", "flip_flop", "kinship", "parity", "reverse", "scratchpad", "sort", "string_edits")  # in 0.2


def names() -> tuple[str, ...]:
    """The files that define a task, which is a class whose `name` is the name of the file. Imports none of them."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(file.stem for file in files if f'\n    name: Literal["{file.stem}"]' in file.read_text(encoding="utf-8"))


def load(name: str, source: str | None = None) -> type[Task]:
    """The class of a task: of one of `names`, or of one from a file, whose text is `source`.

    name    copy; mine.py:Mine, a class in the file; rows.jsonl, lines of a prompt and its answer

    Raises ValueError for an unknown name, and for a file's name without its text. What a user's file raises is passed on.
    """
    if is_from_file(name):
        if source is None:
            raise ValueError(f"task: {name} is in a file, and its text is not given")
        return _of_file(name, source)
    if name in GONE:
        raise ValueError(
            f"task: {name} is no longer a task of posenc; as a file of your own it can still be one, FILE.py:CLASS: "
            "results/claims/flip_flop.py in the repository is an example, docs/lab.md tells how"
        )
    if name not in names():
        raise ValueError(f"task: unknown name {name!r}; known: {', '.join(names())}, FILE.py:CLASS, FILE{LINES}")
    if source is not None:
        raise ValueError(f"source: expected none for {name}, which is a task of posenc")
    return _defined(name)


def class_of(settings: Mapping[str, Any]) -> type[Task]:
    """The class of a task from its settings, as records and experiments hold them."""
    return load(settings["name"], settings.get("source"))


def read(settings: Mapping[str, Any]) -> Task:
    """A task from its settings. Raises ValueError for an unknown name and for invalid settings."""
    return class_of(settings)(**settings)


def is_from_file(name: str) -> bool:
    return CLASS in name or name.endswith(LINES)


def file_of(name: str) -> str:
    """The name of the file of this folder that defines a task; that of lines of prompts and answers for FILE.jsonl."""
    return EXAMPLES if name.endswith(LINES) else name


def _of_file(name: str, source: str) -> type[Task]:
    from posenc.lab.tasks.task import Task

    cls: Any
    if CLASS in name:
        cls = user_file.class_in(name, source, Task, "posenc.lab.tasks.task.Task")
        if "title" not in vars(cls):
            cls.title = Words(cls.__name__)
        cls.__reduce__ = _read_again
        return cls  # type: ignore[no-any-return]
    cls = _defined(EXAMPLES)
    return type(cls)(name, (cls,), {"title": Words(name), "__reduce__": _read_again, "__module__": cls.__module__})  # type: ignore[no-any-return]


def _read_again(task: Task) -> tuple[Any, ...]:
    """For pickle: no other process can import a class of a user's file."""
    return read, (task.model_dump(mode="json"),)


def _defined(name: str) -> type[Task]:
    """The task that a file of this folder defines."""
    from posenc.lab.tasks.task import Task

    module = importlib.import_module(f"posenc.lab.tasks.{name}")
    classes = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    return next(cls for cls in classes if issubclass(cls, Task))
