"""Plants shipped bugs in posenc, one at a time, and says whether the tests named after the entry notice.

A test of entry F3 is a function test_F3_… without arguments (but monkeypatch), in the file of its class. A function
plant_F3_…(patch) beside it puts the bug into posenc: while it is in, at least one of the entry's tests must fail.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

HERE = Path(__file__).parent
FILES = sorted(path.stem for path in HERE.glob("test_[a-k]_*.py"))
NOTICED = (AssertionError, pytest.fail.Exception)
Plant = Callable[[pytest.MonkeyPatch], None]


def ends_in(error: type[Exception]) -> Callable[[Plant], Plant]:
    """Says of a plant that the bug may show itself by that error instead of a wrong number."""

    def marked_so(plant: Plant) -> Plant:
        plant.error = error  # type: ignore[attr-defined]
        return plant

    return marked_so


def _named(kind: str) -> dict[str, list[Callable[..., Any]]]:
    """The functions test_A1_… or plant_A1_… of all files, by entry."""
    found: dict[str, list[Callable[..., Any]]] = {}
    for file in FILES:
        module = importlib.import_module(f"field_bugs.{file}")
        for name, thing in vars(module).items():
            if (match := re.match(rf"{kind}_([A-K]\d+)_", name)) and inspect.isfunction(thing):
                found.setdefault(match[1], []).append(thing)
    return found


def tests() -> dict[str, list[Callable[..., Any]]]:
    return _named("test")


def plants() -> dict[str, list[Plant]]:
    return _named("plant")


def marked(test: Callable[..., Any], name: str) -> bool:
    return any(mark.name == name for mark in getattr(test, "pytestmark", ()))


def noticing(entry: str, plant: Plant, patch: pytest.MonkeyPatch) -> list[str]:
    """Plants the bug; the entry's tests that fail. One that ends in another error than an assertion or `ends_in` raises."""
    plant(patch)
    noticed, counts = [], (*NOTICED, getattr(plant, "error", AssertionError))
    for test in tests()[entry]:
        if marked(test, "cuda") or marked(test, "acceptance"):
            continue
        torch._dynamo.reset()
        try:
            test(**({"monkeypatch": patch} if "monkeypatch" in inspect.signature(test).parameters else {}))
        except counts:
            noticed.append(test.__name__)
    return noticed
