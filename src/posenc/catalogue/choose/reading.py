"""What a trained model's configuration says that its name does not: `posenc choose` advises by it.

readings.json is written by tools/model_readings.py from the readers of `posenc inspect`; of a file they are asked at once
(posenc.configs.reading). A model has a reader if it has a row, or if its name is a model type.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from posenc.catalogue.index import USERS, fold
from posenc.catalogue.lookup import find

METHODS = ("yarn", "ntk", "linear", "llama3", "longrope")
"""Of posenc inspect --extend-to, in its order."""
READ = ("nothing", "hybrid", "chunks", "windows", "seconds", "tables", "closed")
"""What only a reader knows of a model, in the words of rules.toml."""
SCALED = ("yarn", "llama3", "longrope", "dynamic")
"""Scalings that a new one replaces; linear interpolation stays."""


@dataclass(frozen=True)
class Reading:
    """A row of readings.json.

    name     the model's, as it is written there
    of       one of READ for the part of a domain, or for all; left out: what the entry of its name says
    methods  those of METHODS that its code takes; None: its positions are no tokens in a row
    layer    Python, after `posenc.read_config("config.json")`, of the encoding of a layer that turns and sees everything;
             None where that is more than one RoPE of one axis
    scaled   the scaling that the configuration has already
    video    whether it generates videos
    call     Python that builds the encoding of a class of diffusers, after its imports; at: its positions, for `frames`,
             `height`, `width`, `text` words and `fps`
    axes     where a spectrum for each coordinate turns: `sizes`, channels of each; `bases`; `frequencies`, Python; around:
             the call with FREQUENCIES for them; where RIFLEx's authors say it, `repeats`, the latent frame at which longer
             videos begin to repeat
    file     what its user gave: a folder or a file; entry: the encoding of its layers, of the catalogue
    """

    name: str
    of: str | dict[str, str] = field(default_factory=dict)
    methods: tuple[str, ...] | None = METHODS
    layer: str | None = ".encoding(0)"
    scaled: str = ""
    video: bool = False
    call: str = ""
    at: str = ""
    axes: dict[str, Any] = field(default_factory=dict)
    file: str = "config.json"
    entry: str = ""

    def kind(self, domain: str) -> str | None:
        """What the part that has the tokens of a domain is, where only the reader knows."""
        part = domain if domain in ("image", "audio") else "image" if domain == "video" else "text"
        return self.of if isinstance(self.of, str) else self.of.get(part)


@cache
def reading(word: str) -> Reading | None:
    """A model by a name that `posenc list` finds; None for encodings, and models without a reader."""
    users = [match.term for match in find(word) if match.term.role in USERS]
    for name in (word, *(term.written for term in users)):
        if (known := _known().get(fold(name))) is not None:
            written, row = known
            methods = row.get("methods", METHODS)
            return Reading(written, **{**row, "methods": None if methods is None else tuple(methods)})
    return next((Reading(term.written) for term in users if term.role == "type"), None)


@cache
def _known() -> dict[str, tuple[str, dict[str, Any]]]:
    rows = json.loads(Path(__file__).with_name("readings.json").read_text(encoding="utf-8"))
    return {fold(name): (name, row) for name, row in reversed(rows.items())}
