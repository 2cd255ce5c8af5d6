"""The views, one file each: `Parameters`, `data(asked)` and `EXPORTED`, the requests that an exported page can answer.

A view that takes a file of the reader's besides has `uploaded(contents)`.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters, Refused, parse, schema

NAMES = (
    "table",
    "wavelengths",
    "binary",
    "shift",
    "similarity",
    "order",
    "attention",
    "terms",
    "rotary_pair",
    "layouts",
    "bias",
    "compare",
    "extrapolation",
    "precision",
    "paths",
    "audit",
    "story",
)


def view(name: str) -> ModuleType:
    """Raises Refused for a name that is no view's."""
    if name not in NAMES:
        raise Refused(f"view: {name[:40]!r} is none; there are {', '.join(NAMES)}")
    return importlib.import_module(f"posenc.explorer.views.{name}")


def data(name: str, given: object) -> Data:
    """What a view shows for parameters as they come from outside. Raises Refused for what it cannot be asked."""
    module = view(name)
    asked: Parameters = parse(module.Parameters, given)
    try:
        found: Data = module.data(asked)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Refused(str(error)) from error
    return found


def uploaded(name: str, contents: bytes) -> Data:
    """What a view makes of a reader's file. Raises Refused for one that it cannot read, and for views that read none."""
    module = view(name)
    if not hasattr(module, "uploaded"):
        raise Refused(f"view: {name} reads no file")
    try:
        found: Data = module.uploaded(contents)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Refused(str(error)) from error
    return found


def schemas() -> dict[str, dict[str, dict[str, object]]]:
    """The parameters of every view, for the page's controls."""
    return {name: schema(view(name).Parameters) for name in NAMES}
