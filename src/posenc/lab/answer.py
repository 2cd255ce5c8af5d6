"""What was found, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.words import Words


def sentences(found: Mapping[str, Any]) -> list[Words]:
    return []
