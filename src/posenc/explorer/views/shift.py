"""The matrix of a shift, its effect on a row at any position, and its rounding error in fp64."""

from __future__ import annotations

from pydantic import Field

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program

ORDER = 80
POSITION = "p"

ARRAYS = ("omega", "matrix", "here", "there", "moved", "turned", "decades", "errors")


class Parameters(Base):
    p: int = Field(default=10, ge=1, le=1_000_000)
    k: int = Field(default=3, ge=-1000, le=1000)
    pairs: int = Field(default=4, ge=1, le=64)
    base: float = Field(default=10000.0, ge=2, le=1e8)


def data(params: Parameters) -> Data:
    python = program(__file__, p=params.p, k=params.k, d_model=2 * params.pairs, base=params.base)
    variables = run(python)
    facts = {"p": params.p, "k": params.k, "error": float(variables["error"])}
    return Data({name: variables[name] for name in ARRAYS}, python, facts)
