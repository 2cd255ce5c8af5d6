"""Scores by distance: products of sinusoidal rows, RoPE's score and its bound, and random vectors.

All curves are functions of the lag k. `vectors` are a query and a key that the page rotates to any two positions:

    sinusoidal   1 0 1 0 …: rotated by p·ω they are PE(p), cosine before sine
    rope         all ones
    random       the first row of each sample

Legend: k lags from −reach to reach, d channels, r rows of a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program
from posenc.pictures import measures

ORDER = 90
POSITION = "p"

ROWS = 256
CURVES = {"sinusoidal": ("similarity",), "rope": ("score", "bound"), "random": ("independent", "spread", "one", "equal")}


class Parameters(Base):
    kind: Literal["sinusoidal", "rope", "random"] = "sinusoidal"
    d: int = Field(default=128, ge=2, le=512, multiple_of=2)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)
    reach: int = Field(default=64, ge=8, le=512)


def data(params: Parameters) -> Data:
    sizes = {"first": -params.reach, "beyond": params.reach + 1, "pairs": params.d // 2, "rows": ROWS}
    python = program(__file__, params.kind, **params.model_dump(), **sizes)
    curves = computed(python, ("lags", "omega", "vectors", *CURVES[params.kind]))
    falling = [name for name in ("similarity", "score", "bound") if name in curves.arrays]
    rises = {name: measures.first_rise(curves.arrays[name][params.reach :]) for name in falling}
    return replace(curves, facts={"rises": rises, "rows": ROWS})
