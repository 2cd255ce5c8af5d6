"""Errors of the usual ways to compute a sinusoidal table, by position.

The functions below follow common tutorials; the page prints their source.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

import posenc
from posenc import frequencies
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base

ORDER = 175
POSITION = "position"

FARTHEST = 1_000_000
STRIP = 24  # neighbouring integers that are shown with what each dtype makes of them


class Parameters(Base):
    position: int = Field(default=100, ge=1, le=FARTHEST)
    channel: int = Field(default=0, ge=0, le=1023)
    d_model: int = Field(default=128, ge=1, le=1024)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)


EXPORTED = (
    Parameters(),
    *(Parameters(position=position) for position in (257, 2049, 8191, 100_001, FARTHEST)),
    Parameters(d_model=512),
    Parameters(d_model=7),
    Parameters(base=500_000.0),
)


def rounded_once(positions: Tensor, d_model: int, base: float, dtype: torch.dtype) -> Tensor:
    """posenc: computed in float64 and rounded once at the end."""
    encoding = posenc.create("sinusoidal", d_model=d_model, base=base)
    return encoding.tables(posenc.Positions.at(positions[None]), dtype)[0][0]


def textbook(positions: Tensor, d_model: int, base: float) -> Tensor:
    """The tutorial form: exp of a logarithm, all in float32."""
    table = torch.zeros(len(positions), d_model)
    frequency = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    table[:, 0::2] = torch.sin(positions[:, None].float() * frequency)
    table[:, 1::2] = torch.cos(positions[:, None].float() * frequency)
    return table


def power(positions: Tensor, d_model: int, base: float) -> Tensor:
    """The other tutorial form: a power in numpy's float64, cast at the end."""
    table = np.zeros((len(positions), d_model))
    angle = positions.numpy()[:, None] / np.power(base, 2 * np.arange(d_model // 2) / d_model)
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return torch.from_numpy(table).float()


def angle_in(positions: Tensor, d_model: int, base: float, at: torch.dtype, angle: torch.dtype) -> Tensor:
    """Positions are cast to one dtype; the angle, sine and cosine are computed in another."""
    omega = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    angles = positions.to(at).to(angle)[:, None] * omega.to(angle)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :d_model]


Make = Callable[[Tensor, int, float], Tensor]
RECIPES: dict[str, Make] = {
    "float32": lambda p, d, base: rounded_once(p, d, base, torch.float32),
    "power": power,
    "float32 angle": lambda p, d, base: angle_in(p, d, base, torch.float32, torch.float32),
    "textbook": textbook,
    "float16": lambda p, d, base: rounded_once(p, d, base, torch.float16),
    "float16 positions": lambda p, d, base: angle_in(p, d, base, torch.float16, torch.float64),
    "bfloat16": lambda p, d, base: rounded_once(p, d, base, torch.bfloat16),
    "bfloat16 positions": lambda p, d, base: angle_in(p, d, base, torch.bfloat16, torch.float64),
}
SAMPLED = sorted({*range(1, 321), *(round(320 * 3125 ** (k / 160)) for k in range(161))})


def data(params: Parameters) -> Data:
    channel = min(params.channel, params.d_model - 1)
    errors, failed = _errors(params.d_model, params.base)
    integers = torch.arange(STRIP) + max(params.position - STRIP // 3, 0)
    arrays = {
        "positions": np.array(SAMPLED),
        "errors": errors,
        "steps": _steps(params.position, channel, params.d_model, params.base),
        "integers": integers,
        "as_bfloat16": integers.to(torch.bfloat16),
        "as_float16": integers.to(torch.float16),
    }
    facts = {"recipes": list(RECIPES), "failed": failed, "channel": channel}
    return Data(arrays, _python(params), facts)


def _exact(positions: Tensor, d_model: int, base: float) -> Tensor:
    return rounded_once(positions, d_model, base, torch.float64)


@functools.lru_cache(8)
def _errors(d_model: int, base: float) -> tuple[np.ndarray, dict[str, str]]:
    """The largest error over all channels and positions so far, [recipe, position], and the reasons of failed recipes."""
    positions = torch.tensor(SAMPLED)
    exact = _exact(positions, d_model, base)
    errors, failed = np.full((len(RECIPES), len(SAMPLED)), math.nan), {}
    for row, (name, make) in enumerate(RECIPES.items()):
        try:
            table = make(positions, d_model, base).double()
        except (RuntimeError, ValueError) as error:  # the errors that tutorial code raises for an odd width
            failed[name] = str(error)
            continue
        errors[row] = np.maximum.accumulate((table - exact).abs().amax(1).numpy())
    return errors, failed


def _steps(position: int, channel: int, d_model: int, base: float) -> np.ndarray:
    """[exact and recipes, 5]: the position as used, the frequency as used, their product, the value, its error."""
    at, pair = torch.tensor([position]), channel // 2
    omega = torch.tensor(frequencies.rotary(d_model, base)[pair], dtype=torch.float64)
    exp_log = torch.exp(torch.tensor(2.0 * pair) * (-math.log(base) / d_model))
    used: dict[str, tuple[Any, Any]] = {
        "float32 angle": (at.float(), omega.float()),
        "textbook": (at.float(), exp_log),
        "float16 positions": (at.half().double(), omega),
        "bfloat16 positions": (at.bfloat16().double(), omega),
    }
    exact = float(_exact(at, d_model, base)[0, channel])
    rows = []
    for name in ("exact", *RECIPES):
        p, w = used.get(name, (at.double(), omega))
        try:
            value = exact if name == "exact" else float(RECIPES[name](at, d_model, base)[0, channel])
        except (RuntimeError, ValueError):
            value = math.nan
        rows.append([float(p), float(w), float(p * w), value, value - exact])
    return np.array(rows)


def _python(params: Parameters) -> str:
    functions = "\n\n\n".join(inspect.getsource(f).rstrip() for f in (rounded_once, textbook, power, angle_in))
    functions = re.sub(r": (?:Tensor|int|float|torch\.dtype)\b|(?: -> Tensor)", "", functions)
    return f"""import math

import numpy as np
import torch
import posenc


{functions}


d_model, base = {params.d_model}, {params.base!r}
positions = torch.tensor(sorted({{*range(1, 321), *(round(320 * 3125 ** (k / 160)) for k in range(161))}}))
exact = rounded_once(positions, d_model, base, torch.float64)
tables = [
    lambda: rounded_once(positions, d_model, base, torch.float32),
    lambda: power(positions, d_model, base),
    lambda: angle_in(positions, d_model, base, torch.float32, torch.float32),
    lambda: textbook(positions, d_model, base),
    lambda: rounded_once(positions, d_model, base, torch.float16),
    lambda: angle_in(positions, d_model, base, torch.float16, torch.float64),
    lambda: rounded_once(positions, d_model, base, torch.bfloat16),
    lambda: angle_in(positions, d_model, base, torch.bfloat16, torch.float64),
]
errors = torch.full((len(tables), len(positions)), math.nan, dtype=torch.float64)
for row, table in enumerate(tables):
    if d_model % 2 == 0 or row not in (1, 3):  # the tutorials' codes fail on an odd width
        errors[row] = (table().double() - exact).abs().amax(1).cummax(0).values

integers = torch.arange({STRIP}) + {max(params.position - STRIP // 3, 0)}
as_bfloat16, as_float16 = integers.bfloat16(), integers.half()"""
