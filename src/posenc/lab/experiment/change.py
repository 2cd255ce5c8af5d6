"""A change of RoPE's frequencies after training, as an experiment names it.

yarn       the factor follows the length: 1 up to the trained length L, n / L at a longer length n
yarn@2     the factor is 2 at every length, also at the trained one and below
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

METHODS = ("interpolation", "ntk", "yarn", "self_extend")
AT = "@"


class Change(NamedTuple):
    """`factor` is None if it follows the length."""

    method: str
    factor: float | None = None

    @classmethod
    def parse(cls, word: str) -> Change:
        """Raises ValueError for an unknown method, and for a factor that is no number above 1."""
        method, at, given = word.partition(AT)
        if method not in METHODS:
            raise ValueError(f"expected one of {', '.join(METHODS)}, or one at a factor such as yarn@2, got {word!r}")
        if not at:
            return cls(method)
        try:
            factor = float(given)
        except ValueError:
            factor = math.nan
        if not 1 < factor < math.inf:
            raise ValueError(f"expected a factor above 1 after {AT}, such as {method}{AT}2, got {word!r}")
        return cls(method, factor)

    def factor_at(self, ratio: float) -> float:
        """The factor where a length is `ratio` times the trained one; 1 means no change."""
        return max(1.0, ratio) if self.factor is None else self.factor


def _checked(word: str) -> str:
    Change.parse(word)
    return word


ChangeName = Annotated[str, AfterValidator(_checked)]
