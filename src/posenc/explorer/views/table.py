"""The sinusoidal table, position × channel, and its frequencies, with which the page interpolates positions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from posenc import frequencies
from posenc.encodings.sinusoidal import ChannelLayout
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base

ORDER = 40
POSITION = "p"

Rounded = Literal["float64", "float32", "bfloat16", "float16"]


class Parameters(Base):
    length: int = Field(default=50, ge=1, le=1024)
    d_model: int = Field(default=128, ge=1, le=1024)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)
    layout: ChannelLayout = "interleaved"
    dtype: Rounded = "float64"


EXPORTED = (
    Parameters(),
    Parameters(length=30, d_model=20),
    Parameters(length=100, d_model=512),
    *(Parameters(length=length, d_model=8) for length in (2, 8, 10)),
    Parameters(length=512),
    *(Parameters(layout=layout) for layout in ("sin_cos", "cos_sin")),
    *(Parameters(dtype=dtype) for dtype in ("float32", "bfloat16", "float16")),
    *(Parameters(base=base) for base in (100.0, 1e6)),
)


def data(params: Parameters) -> Data:
    omega = frequencies.rotary(params.d_model + params.d_model % 2, params.base).values
    python = _python(params)
    return Data({"table": run(python)["table"], "omega": omega}, python)


def _python(params: Parameters) -> str:
    sizes = f"{params.length}, {params.d_model}"
    if params.layout == "interleaved":
        line = f"table = posenc.sinusoidal_table({sizes}, base={params.base!r}, dtype=torch.{params.dtype})"
        return f"import torch\nimport posenc\n\n{line}"
    return f"""import torch
import posenc

encoding = posenc.create("sinusoidal", d_model={params.d_model}, base={params.base!r}, layout="{params.layout}")
x = torch.zeros(1, {sizes}, dtype=torch.{params.dtype})
table = encoding.embed(x, posenc.Positions.arange(1, {params.length}))[0]"""
