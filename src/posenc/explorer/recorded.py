"""Records of trained models: arrays in a compressed .npz file, with their origin as JSON under the name `about`."""

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
    with np.load(file) as found:
        return {name: found[name] for name in found.files if name != "about"}


@cache
def about(file: Path) -> dict[str, Any]:
    """Settings and provenance. Do not change them in place."""
    with np.load(file) as found:
        said: dict[str, Any] = json.loads(str(found["about"]))
    return said


def write(file: Path, said: dict[str, Any], named: dict[str, Array]) -> None:
    np.savez_compressed(file, about=np.array(json.dumps(said, ensure_ascii=False)), **named)  # type: ignore[arg-type]
