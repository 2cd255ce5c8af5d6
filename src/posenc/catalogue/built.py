"""What one of each entry shows when it is built: sizes, options, seams, traits, parameters. Reading it needs no torch.

`python -m posenc.catalogue.built` builds every entry and writes built.json; a test holds the file equal to the code. An
entry that is not in the file is built when it is asked for.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

from posenc.catalogue import lookup
from posenc.catalogue.entry import Entry

FILE = Path(__file__).parent / "built.json"
SIZES = {"d_model": 512, "n_heads": 8, "n_layers": 6, "max_positions": 2048}


def facts(entry: Entry) -> dict[str, Any]:
    """What `build` finds, from the file where it has the entry."""
    return _file().get(entry.name) or build(entry)


def build(entry: Entry) -> dict[str, Any]:
    """Seams, traits and parameters are those of one built at SIZES, of layer 0 where layers differ; the drawing is of
    layers that differ. Imports torch.

    Positions have none of these; their `sizes` are the arguments that they need, `options` those that may be left out.
    """
    from posenc.encoding import SEAMS

    parameters = inspect.signature(entry.maker()).parameters
    if entry.kind == "positions":
        needed = [name for name, about in parameters.items() if about.default is inspect.Parameter.empty]
        seams, traits, count, drawing = [], [], 0, ""
    else:
        needed = [name for name in parameters if name in lookup.SIZES]
        encoding = lookup.create(entry.name, **SIZES)
        first = encoding.at_layer(0)
        seams, traits = [seam for seam in SEAMS if seam in first.seams], sorted(first.traits)
        count = sum(parameter.numel() for parameter in encoding.parameters())
        drawing = repr(encoding) if entry.kind == "preset" and "n_layers" in needed else ""
    return {
        "seams": seams,
        "traits": traits,
        "parameters": count,
        "sizes": needed,
        **({"drawing": drawing} if drawing else {}),
        "options": {name: about.default for name, about in parameters.items() if name not in needed},
    }


@cache
def _file() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    for row in rows.values():
        row["options"] = {name: _frozen(value) for name, value in row["options"].items()}
    return rows


def _frozen(value: Any) -> Any:
    """Defaults are tuples, which JSON writes as lists."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    rows = ",\n".join(f" {json.dumps(entry.name)}: {json.dumps(build(entry))}" for entry in lookup.ENTRIES)
    FILE.write_text(f"{{\n{rows}\n}}\n", "utf-8")
