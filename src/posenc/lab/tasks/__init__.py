"""What a model of the lab is trained and scored on; one file per task, each of which draws itself.

    tasks.load("copy")(length=10, lengths=(10, 20, 40)).training_batch(rows=32, random=generator)

Legend: b rows, t tokens.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posenc.lab.tasks.task import Task

CLASSES = {
    "language_model": "LanguageModel",
    "masked_language_model": "MaskedLanguageModel",
    "copy": "Copy",
    "reverse": "Reverse",
    "addition": "Addition",
    "sort": "Sort",
    "recall": "Recall",
    "flip_flop": "FlipFlop",
    "passkey": "Passkey",
    "parity": "Parity",
    "word_order": "WordOrder",
}


def names() -> tuple[str, ...]:
    return tuple(CLASSES)


def load(name: str) -> type[Task]:
    """Raises ValueError for an unknown name."""
    if name not in CLASSES:
        raise ValueError(f"task: unknown name {name!r}; known: {', '.join(CLASSES)}")
    module = importlib.import_module(f"posenc.lab.tasks.{name}")
    task: type[Task] = getattr(module, CLASSES[name])
    return task
