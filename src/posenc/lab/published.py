"""What others published, and what was found here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def table(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    return []
