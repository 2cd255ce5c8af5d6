"""A change of RoPE's frequencies after training, as an experiment names it.

yarn       the factor follows the length: 1 up to the trained length L, n / L at a longer length n
yarn@2     the factor is 2 at every length, also at the trained one and below

and of the model after that, which is trained on (`Then`):

yarn@4, 200 steps at 512           the factor is 4; without @4, that of the new length
drop, 100 steps at 64, rate 0.001  no positions any more (DroPE)
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

METHODS = ("interpolation", "ntk", "ntk_by_parts", "yarn", "self_extend")
DROP = "drop"
AT, TRAINED = "@", ", "


class Change(NamedTuple):
    """`factor` is None if it follows the length; `trained` says how the model was trained on, "" if it was not."""

    method: str
    factor: float | None = None
    trained: str = ""

    @classmethod
    def parse(cls, word: str) -> Change:
        """Raises ValueError for an unknown method, and for a factor that is no number above 1."""
        changed, _, trained = word.partition(TRAINED)
        method, at, factor_text = changed.partition(AT)
        if trained and changed == DROP:
            return cls(DROP, None, trained)
        if method not in METHODS:
            raise ValueError(f"expected one of {', '.join(METHODS)}, or one at a factor such as yarn@2, got {word!r}")
        if not at:
            return cls(method, None, trained)
        try:
            factor = float(factor_text)
        except ValueError:
            factor = math.nan
        if not 1 < factor < math.inf:
            raise ValueError(f"expected a factor above 1 after {AT}, such as {method}{AT}2, got {word!r}")
        return cls(method, factor, trained)

    @property
    def follows_length(self) -> bool:
        """Whether a model is unchanged up to its trained length."""
        return self.factor is None and not self.trained

    def factor_at(self, ratio: float) -> float:
        """The factor where a length is `ratio` times the trained one; 1 means no change."""
        return max(1.0, ratio) if self.factor is None else self.factor


def _checked(word: str) -> str:
    Change.parse(word)
    return word


ChangeName = Annotated[str, AfterValidator(_checked)]


class Then(BaseModel):
    """Training on after a change of RoPE: so many steps at a length, with a warmup and a decay of their own.

    change         a method and maybe its factor, yarn@4, or drop: no positions from there on
    length         the trained length from there on, among the scored ones; a step has as many tokens as before
    learning_rate  that of the training before if left out
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    change: str
    steps: int = Field(ge=1)
    length: int = Field(ge=1)
    learning_rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @property
    def word(self) -> str:
        """yarn@4, 200 steps at 512, rate 0.001: what the record calls it."""
        rate = "" if self.learning_rate is None else f", rate {self.learning_rate:g}"
        return f"{self.change}{TRAINED}{self.steps} steps at {self.length}{rate}"

    @field_validator("change")
    @classmethod
    def _can_be_trained(cls, word: str) -> str:
        if word != DROP and Change.parse(word).method == "self_extend":
            raise ValueError("self_extend is for models that are not trained on; expected interpolation, ntk, yarn or drop")
        return word
