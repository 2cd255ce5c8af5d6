"""Frequencies that depend on length and on several coordinates: a map of axes applied to the frequencies of each length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posenc import frequencies
from posenc.frequencies import ByLength, Frequencies


@dataclass(frozen=True)
class Mapped:
    """`at_length(n)`: those of `source`, then posenc.frequencies.<name>(…, **arguments)."""

    source: ByLength
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def trained_length(self) -> int | None:
        """That of `source`."""
        return getattr(self.source, "trained_length", None)

    def at_length(self, n: int) -> Frequencies:
        """The frequencies of a request of n tokens."""
        result: Frequencies = getattr(frequencies, self.name)(self.source.at_length(n), **dict(self.arguments))
        return result
