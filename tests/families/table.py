"""The table of families: docs/families.md, made from a run of every comparison.

python tests/families/table.py [--check]
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

OUT = Path(__file__).parents[2] / "docs" / "families.md"
HERE = Path(__file__).parent


def load_proofs() -> None:
    """Imports every proofs_*.py, which registers its comparisons."""
    for module in pkgutil.iter_modules([str(HERE)]):
        if module.name.startswith("proofs_"):
            importlib.import_module(f"families.{module.name}")


def model_types() -> list[str]:
    return sorted(CONFIG_MAPPING_NAMES)


def reasons(name: str) -> dict[str, str]:
    """Model types with a reason each, gathered from every proofs_*.py that has a dict of that name."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules([str(HERE)]):
        if module.name.startswith("proofs_"):
            found |= getattr(importlib.import_module(f"families.{module.name}"), name, {})
    return found


def without_positions() -> dict[str, str]:
    """NO_POSITIONS: no attention, or attention without order; the reason says where order comes from."""
    return reasons("NO_POSITIONS")


def not_proven() -> dict[str, str]:
    """NOT_PROVEN: has positions, and is not compared; the precise reason."""
    return reasons("NOT_PROVEN")
