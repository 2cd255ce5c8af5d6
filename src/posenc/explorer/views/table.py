"""The sinusoidal table, position × channel, and its frequencies, with which the page interpolates positions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from posenc import frequencies
from posenc.encodings.sinusoidal import ChannelLayout
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program

ORDER = 40
POSITION = "p"

Rounded = Literal["float64", "float32", "bfloat16", "float16"]


class Parameters(Base):
    length: int = Field(default=50, ge=1, le=1024)
    d_model: int = Field(default=128, ge=1, le=1024)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)
    layout: ChannelLayout = "interleaved"
    dtype: Rounded = "float64"


def data(params: Parameters) -> Data:
    omega = frequencies.rotary(params.d_model + params.d_model % 2, params.base).values
    part = "interleaved" if params.layout == "interleaved" else "halves"
    python = program(__file__, part, **params.model_dump())
    return Data({"table": run(python)["table"], "omega": omega}, python)
