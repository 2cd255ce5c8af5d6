"""What takes long is tried in full by make acceptance, and a sample of it by make test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def a_third(names: Iterable[str]) -> list[Any]:
    """Every third belongs to make test."""
    return [pytest.param(name, marks=pytest.mark.acceptance if at % 3 else ()) for at, name in enumerate(names)]
