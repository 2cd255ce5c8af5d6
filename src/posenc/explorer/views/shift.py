"""The matrix of a shift, its effect on a row at any position, and its rounding error in fp64."""

from __future__ import annotations

from pydantic import Field

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base

ORDER = 80
POSITION = "p"

DECADES, NEIGHBOURS = 7, 10
ARRAYS = ("omega", "matrix", "here", "there", "moved", "turned", "decades", "errors")


class Parameters(Base):
    p: int = Field(default=10, ge=1, le=1_000_000)
    k: int = Field(default=3, ge=-1000, le=1000)
    pairs: int = Field(default=4, ge=1, le=64)
    base: float = Field(default=10000.0, ge=2, le=1e8)


EXPORTED = (
    Parameters(),
    *(Parameters(p=p, k=k) for p in (2, 10, 100, 1_000_000) for k in (1, 3, -5) if (p, k) != (10, 3)),
    Parameters(pairs=16),
    Parameters(pairs=64),
)


def data(params: Parameters) -> Data:
    python = _python(params)
    variables = run(python)
    facts = {"p": params.p, "k": params.k, "error": float(variables["error"])}
    return Data({name: variables[name] for name in ARRAYS}, python, facts)


def _python(params: Parameters) -> str:
    d_model = 2 * params.pairs
    return f"""import torch
import posenc

p, k, d_model, base = {params.p}, {params.k}, {d_model}, {params.base!r}
omega = posenc.frequencies.rotary(d_model, base)
encoding = posenc.create("sinusoidal", d_model=d_model, base=base)


def rows(positions):
    x = torch.zeros(1, len(positions), d_model, dtype=torch.float64)
    return encoding.embed(x, posenc.Positions.at(positions.double()[None]))[0]


matrix = posenc.shift_matrix(k, d_model, base)  # p does not enter
here, there = rows(torch.tensor([p, p + k]))
moved = matrix @ here  # on columns; rows take the transpose, here @ matrix.T
error = (there - moved).norm()

sin, cos = here.view(-1, 2).T
next_sin, next_cos = there.view(-1, 2).T
turned = torch.atan2(next_sin * cos - next_cos * sin, next_cos * cos + next_sin * sin)

decades = 10 ** torch.arange({DECADES})
many = (decades[:, None] + torch.arange({NEIGHBOURS})).flatten()
errors = (rows(many + k) - rows(many) @ matrix.T).norm(dim=1).view(-1, {NEIGHBOURS}).amax(dim=1)"""
