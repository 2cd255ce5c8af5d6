"""The founding notes: `ledger` has what they describe and claim, `walk` computes their worked examples step by step."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc.learn import ledger as ledger
    from posenc.learn import walk as walk


def __getattr__(name: str) -> Any:
    if name in ("ledger", "walk"):  # loaded when first used: the command line's help needs neither
        return importlib.import_module(f"posenc.learn.{name}")
    raise AttributeError(f"module 'posenc.learn' has no attribute {name!r}")
