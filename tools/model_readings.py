"""Writes src/posenc/catalogue/choose/readings.json: what `posenc choose` has to know of a trained model beside its name.

    python tools/model_readings.py

Each row is what posenc.configs.reading finds in a configuration: keys of a published file in read_as.json beside this file
or in diffusion_transformers.toml, else the defaults of a model type. reading.py beside readings.json says what a row means;
a type without a row has nothing that differs from the usual.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from posenc.catalogue.index import fold
from posenc.configs import ConfigError, spec_of
from posenc.configs.families.diffusion_transformers import MODELS, ROWS
from posenc.configs.family import reader_paths
from posenc.configs.reading import row_of

FILE = Path(__file__).parents[1] / "src/posenc/catalogue/choose/readings.json"
READ_AS: dict[str, Any] = json.loads(Path(__file__).with_name("read_as.json").read_text("utf-8")) | MODELS


def configuration(model: str) -> dict[str, Any] | None:
    """A configuration by which `posenc inspect` reads a model of this name; None for what it does not read."""
    known = READ_AS.get(model) or next((one for one in reader_paths() if fold(one) == fold(model)), None)
    if not isinstance(known, str):
        return known
    return {"_class_name" if known in ROWS else "model_type": known}


def readings() -> dict[str, dict[str, Any]]:
    """Every name of READ_AS, and every type whose row is not empty."""
    rows = {name: row for name in (*READ_AS, *sorted(reader_paths())) if (row := reading(name)) is not None}
    return {name: row for name, row in rows.items() if row or name in READ_AS}


def reading(name: str) -> dict[str, Any] | None:
    """The row of a model; None where its configuration needs keys that are not known."""
    try:
        config = configuration(name) or {}
        return row_of(config, spec_of(config))
    except ConfigError:
        return None


if __name__ == "__main__":
    rows = ",\n".join(f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}" for name, row in readings().items())
    FILE.write_text(f"{{\n{rows}\n}}\n", "utf-8")
