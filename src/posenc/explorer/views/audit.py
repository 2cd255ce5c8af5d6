"""Recognises an uploaded table or an example, and shows its difference from the recognised formula."""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

import posenc
from posenc.checking.recognition import Recognised, recognise
from posenc.checking.recognition.formula import COS, SIN, channels, divisor
from posenc.checking.recognition.recogniser import matrix
from posenc.explorer import table_files
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base

ORDER = 70

MOST_SHOWN = 512  # rows and columns of an excerpt

Sample = Literal[
    "interleaved",
    "sin_cos",
    "tensor2tensor",
    "offset",
    "odd_zero",
    "normalised",
    "transposed",
    "rope_cache",
    "bfloat16_positions",
    "bfloat16_table",
    "textbook",
    "per_channel",
    "one_cell",
    "learned",
    "random",
]


class Parameters(Base):
    sample: Sample = Field(default="bfloat16_positions")


# Example tables. The page prints the body of the function that makes each.


def interleaved() -> Any:
    return posenc.sinusoidal_table(40, 32)


def sin_cos() -> Any:
    encoding = posenc.create("sinusoidal", d_model=32, base=500.0, layout="sin_cos")
    return encoding.embed(torch.zeros(1, 40, 32), posenc.Positions.arange(1, 40))[0]


def tensor2tensor() -> Any:
    encoding = posenc.create("sinusoidal", d_model=32, layout="sin_cos", denominator="d/2-1")
    return encoding.embed(torch.zeros(1, 40, 32), posenc.Positions.arange(1, 40))[0]


def offset() -> Any:
    table = posenc.sinusoidal_table(40, 32, start=2)
    table[1] = 0
    return table


def odd_zero() -> Any:
    encoding = posenc.create("sinusoidal", d_model=33, layout="sin_cos", odd="zero")
    return encoding.embed(torch.zeros(1, 40, 33), posenc.Positions.arange(1, 40))[0]


def normalised() -> Any:
    return torch.nn.functional.normalize(posenc.sinusoidal_table(40, 32, dtype=torch.float64))


def transposed() -> Any:
    return posenc.sinusoidal_table(40, 32, base=100.0).T


def rope_cache() -> Any:
    inv_freq = 1.0 / 500000 ** (torch.arange(0, 32, 2).float() / 32)
    angle = torch.arange(40).float()[:, None] * inv_freq
    return torch.cat([angle, angle], dim=1).cos()


def bfloat16_positions() -> Any:
    position = torch.arange(288).to(torch.bfloat16).double()
    angle = position[:, None] / 10000 ** (torch.arange(0, 16, 2).double() / 16)
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).float()


def bfloat16_table() -> Any:
    return posenc.sinusoidal_table(40, 32, dtype=torch.bfloat16)


def textbook() -> Any:
    table = torch.zeros(160, 16)
    position = torch.arange(160).unsqueeze(1).float()
    frequency = torch.exp(torch.arange(0, 16, 2).float() * (-math.log(10000.0) / 16))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


def per_channel() -> Any:
    channel = torch.arange(32)
    angle = torch.arange(40).double()[:, None] / 10000 ** (2 * channel.double() / 32)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()


def one_cell() -> Any:
    table = posenc.sinusoidal_table(40, 32)
    table[20, 7] += 0.5
    return table


def learned() -> Any:
    return torch.randn(40, 32, generator=torch.Generator().manual_seed(0)).cumsum(0) * 0.02


def random() -> Any:
    return torch.randn(40, 32, generator=torch.Generator().manual_seed(0))


SAMPLES: dict[str, Callable[[], Any]] = {
    make.__name__: make
    for make in (
        interleaved,
        sin_cos,
        tensor2tensor,
        offset,
        odd_zero,
        normalised,
        transposed,
        rope_cache,
        bfloat16_positions,
        bfloat16_table,
        textbook,
        per_channel,
        one_cell,
        learned,
        random,
    )
}
EXPORTED = (Parameters(), *(Parameters(sample=name) for name in SAMPLES if name != "bfloat16_positions"))  # type: ignore[arg-type]


def data(params: Parameters) -> Data:
    make = SAMPLES[params.sample]
    table = make()
    body = textwrap.dedent(inspect.getsource(make).split(":\n", 1)[1]).rstrip()
    body = body.removesuffix("\nreturn table").replace("return ", "table = ")
    imports = "import math\n\nimport torch" if "math." in body else "import torch"
    lines = (
        f"{imports}\nimport posenc\nfrom posenc.checking.recognition import recognise\n\n{body}\nresult = recognise(table)"
    )
    return _shown(table, recognise(table), lines, uploaded=False)


def uploaded(contents: bytes) -> Data:
    """The table in a file's bytes. Raises ValueError with the reason if it holds none."""
    table = table_files.read_table(contents)
    lines = "import numpy\n" + _python('table = numpy.load("YOUR FILE.npy")')
    return _shown(table, recognise(table), lines, uploaded=True)


def _python(source: str) -> str:
    imports = "import torch\nimport posenc\nfrom posenc.checking.recognition import recognise"
    return f"{imports}\n\n{source}\nresult = recognise(table)"


def _shown(values: Any, recognised: Recognised, lines: str, *, uploaded: bool) -> Data:
    table = matrix(values)
    window = np.s_[:MOST_SHOWN, :MOST_SHOWN]
    arrays = {"table": table[window]}
    if recognised.table is not None:
        arrays["recognised"] = recognised.table[window]
    finite = np.abs(table[np.isfinite(table)])
    formula = recognised.formula
    facts: dict[str, Any] = {
        "uploaded": uploaded,
        "shape": list(table.shape),
        "limit": float(finite.max()) if finite.size else 1.0,
        "dtype": recognised.dtype,
        "residual": recognised.residual,
        "allowed": recognised.allowed,
        "at": recognised.at,
        "arithmetic": recognised.arithmetic,
        "transposed": recognised.transposed,
        "silent": list(recognised.silent[:64]),
        "findings": [{"level": f.level, "en": f.words.en, "zh": f.words.zh} for f in recognised.findings],
        "formula": formula
        and {
            "layout": formula.layout,
            "width": formula.width,
            "base": formula.base,
            "denominator": formula.denominator,
            "offset": formula.offset,
            "scale": formula.scale,
            "amplitude": formula.amplitude,
            "odd": formula.odd,
        },
    }
    if formula:
        index, kind = channels(formula.layout, formula.width, formula.odd)
        facts["divisor"] = divisor(formula.layout, formula.width, formula.odd, formula.denominator)
        facts["channels"] = [[int(i), {SIN: "sin", COS: "cos"}.get(int(k), "0")] for i, k in zip(index, kind, strict=True)][
            :MOST_SHOWN
        ]
    return Data(arrays, f"{lines}\n{recognised.python}" if recognised.python else lines, facts)
