"""Records: of trained models arrays in a compressed .npz file, with their origin as JSON under the name `about`; of others
a file of JSON.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy import ndarray as Array


@cache
def arrays(file: Path) -> dict[str, Array]:
    """The arrays by name. Do not change them in place."""
    with np.load(file) as archive:
        return {name: archive[name] for name in archive.files if name != "about"}


@cache
def about(file: Path) -> dict[str, Any]:
    """Settings and provenance. Do not change them in place."""
    with np.load(file) as archive:
        settings: dict[str, Any] = json.loads(str(archive["about"]))
    return settings


@cache
def document(file: Path) -> dict[str, Any]:
    """What a file of JSON holds. Do not change it in place."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def write(file: Path, settings: dict[str, Any], named: dict[str, Array]) -> None:
    np.savez_compressed(file, about=np.array(json.dumps(settings, ensure_ascii=False)), **named)  # type: ignore[arg-type]
