"""A clock for each pair of channels, and the distances between the sinusoidal rows."""

from __future__ import annotations

import functools

import torch
from pydantic import Field

from posenc import frequencies
from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program
from posenc.pictures import measures

ORDER = 30
POSITION = "p"

LENGTH = 4096  # twelve bits
ROWS = 128  # the page compares its own angles with these
WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


class Parameters(Base):
    clocks: int = Field(default=4, ge=1, le=16)
    base: float = Field(default=10000.0, ge=2, le=1e8)


def data(params: Parameters) -> Data:
    d_model = 2 * params.clocks
    lags = torch.arange(LENGTH)
    arrays = {
        "omega": frequencies.rotary(d_model, params.base).values,
        "table": sinusoidal_table(ROWS, d_model, params.base, dtype=torch.float64),
        "apart": measures.distances(lags, d_model, params.base),
        "one_apart": measures.distances(lags, 2, params.base),
        "widths": WIDTHS,
        "closest": _closest(params.base),
    }
    python = program(__file__, d_model=d_model, base=params.base)
    return Data(arrays, python, {"length": LENGTH})


@functools.lru_cache(maxsize=8)
def _closest(base: float) -> tuple[measures.Closest, ...]:
    return tuple(measures.uniqueness(d_model, LENGTH, base) for d_model in WIDTHS)
