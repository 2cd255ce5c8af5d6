"""Public names of a package that are loaded when they are first used.

    if TYPE_CHECKING:
        from posenc.checking.checking import check as check
    __getattr__, __dir__ = public("posenc.checking", {"check": "checking"})

No module of the package may bear the name of a function in the table: importing it would put it in the function's place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def public(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package; `where` names the module of each name, below the package."""

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *where})
