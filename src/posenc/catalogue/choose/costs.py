"""The measured cost of every entry, relative to no encoding. `python -m posenc.pictures.costs` measures and writes them.

prefill        512 tokens          prefill_long   2048 tokens
decode         a token after 511   training       forward and backward of 512 tokens
memory         bytes beyond NoPE's in a forward pass of 2048 tokens, and of half as many
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from posenc.catalogue.say import say
from posenc.support.languages import Words

FILE = Path(__file__).parent / "costs.json"
MiB = 2**20
FEW = 8 * MiB  # bytes below which a growth with the tokens cannot be told from the noise of the measurement
MEASURES: dict[str, Words] = {
    "prefill": say("prefill, 512 tokens"),
    "prefill_long": say("prefill, 2048 tokens"),
    "decode": say("decode after 511 tokens"),
    "training": say("training, 512 tokens"),
}
Order = Literal["few", "1", "n", "n²"]
ORDERS: dict[Order, Words] = {
    "few": say("too little to be measured"),
    "1": say("independent of the number of tokens"),
    "n": say("proportional to the number of tokens"),
    "n²": say("proportional to its square"),
}


class Ratio(NamedTuple):
    """Time relative to NoPE: median and quartiles over rounds."""

    median: float
    low: float
    high: float

    def text(self) -> str:
        return f"{_digits(self.median)} ({_digits(self.low)}–{_digits(self.high)})"


class Memory(NamedTuple):
    """Bytes beyond NoPE's, and how they grow with the tokens."""

    bytes: int
    order: Order


class Cost(NamedTuple):
    """The costs of one entry. What it cannot do has a reason in words instead of a number."""

    ratios: dict[str, Ratio | str]
    memory: Memory | str

    def median(self, measure: str) -> float | None:
        ratio = self.ratios[measure]
        return ratio.median if isinstance(ratio, Ratio) else None


@cache
def measured() -> dict[str, Cost]:
    """The committed measurement of every entry, by name."""
    return {name: cost_of(row) for name, row in _file()["entries"].items()}


@cache
def conditions() -> dict[str, Any]:
    """Sizes, machine and load of the measurement."""
    conditions_measured: dict[str, Any] = _file()["conditions"]
    return conditions_measured


@cache
def _file() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return data


def cost_of(row: dict[str, Any]) -> Cost:
    """The costs of an entry from a row of the file, or of `posenc.pictures.costs.cost_of`."""
    ratios: dict[str, Ratio | str] = {
        name: row[name].get("why") or Ratio(row[name]["median"], row[name]["low"], row[name]["high"]) for name in MEASURES
    }
    memory = row["memory"]
    return Cost(ratios, memory.get("why") or Memory(memory["bytes"], growth(memory["half"], memory["bytes"])))


def growth(half: int, whole: int) -> Order:
    """How memory grows from half of the tokens to all of them: by less than √2, by about 2, or by more than 2√2."""
    if whole < FEW:
        return "few"
    growth = whole / max(half, 1)
    return "1" if growth < 2**0.5 else "n" if growth < 2**1.5 else "n²"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
