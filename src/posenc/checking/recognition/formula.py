"""The formulas of the recognised tables: which channel is the sine or cosine of which frequency.

    interleaved       s0 c0 s1 c1         rope_cos_half         c0 c1 | c0 c1     (rope_sin_… the same with sines)
    interleaved_cos   c0 s0 c1 s1         rope_cos_interleaved  c0 c0 c1 c1
    sin_cos           s0 s1 | c0 c1       rope_cos              c0 c1
    cos_sin           c0 c1 | s0 s1       per_channel           s0 c1 s2 c3       a mistake: every channel its own speed

Legend: t rows, c channels; an angle is (row + offset)·scale·base^(-exponent of the channel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

Layout = Literal[
    "interleaved",
    "sin_cos",
    "cos_sin",
    "interleaved_cos",
    "rope_cos_half",
    "rope_sin_half",
    "rope_cos_interleaved",
    "rope_sin_interleaved",
    "rope_cos",
    "rope_sin",
    "per_channel",
]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
PAIRED: tuple[Layout, ...] = LAYOUTS[:4]
Denominator = Literal["d/2", "d/2-1", "d"]
Odd = Literal["even", "drop", "zero"]
Rounded = Literal["float64", "float32", "float16", "bfloat16"]
# What was computed how: positions and frequencies in which precision, before sine and cosine.
Arithmetic = Literal[
    "exact", "float32", "exp_log", "power", "bfloat16_positions", "float16_positions", "bfloat16", "float16"
]

SIN, COS, ZERO = 1, 0, -1


def channels(layout: Layout, width: int, odd: Odd) -> tuple[np.ndarray, np.ndarray]:
    """For every channel, the index of its frequency and SIN, COS or ZERO."""
    turning = width - (odd == "zero")
    c = np.arange(turning)
    sines = (turning + 1) // 2
    if layout in ("interleaved", "interleaved_cos"):
        index, kind = c // 2, np.where(c % 2 == 0, SIN, COS) if layout == "interleaved" else np.where(c % 2 == 0, COS, SIN)
    elif layout == "sin_cos":
        index, kind = np.where(c < sines, c, c - sines), np.where(c < sines, SIN, COS)
    elif layout == "cos_sin":
        cosines = turning - sines
        index, kind = np.where(c < cosines, c, c - cosines), np.where(c < cosines, COS, SIN)
    elif layout == "per_channel":
        index, kind = c, np.where(c % 2 == 0, SIN, COS)
    else:
        kind = np.full(turning, SIN if "sin" in layout else COS)
        index = c % (turning // 2) if layout.endswith("half") else c // 2 if layout.endswith("interleaved") else c
    dead = (0, width - turning)
    return np.pad(index, dead), np.pad(kind, dead, constant_values=ZERO)


def divisor(layout: Layout, width: int, odd: Odd, denominator: Denominator) -> float:
    """The denominator in the exponent of the base."""
    d = 2 * width if layout in ("rope_cos", "rope_sin") else width - (odd == "zero")
    return {"d/2": d / 2, "d/2-1": max((d + 1) // 2 - 1, 1), "d": d}[denominator]


@dataclass(frozen=True)
class Formula:
    """amplitude · sin or cos of (row + offset)·scale·base^(-index/denominator).

    base_seen   False where only one pair turns, at speed 1 whatever the base
    """

    layout: Layout
    width: int
    base: float = 10000.0
    denominator: Denominator = "d/2"
    offset: float = 0
    scale: float = 1.0
    amplitude: float = 1.0
    odd: Odd = "even"
    base_seen: bool = True

    @property
    def frequencies(self) -> np.ndarray:
        """Of every channel."""
        index, _ = channels(self.layout, self.width, self.odd)
        return np.asarray(self.base ** (-index / divisor(self.layout, self.width, self.odd, self.denominator)))

    def table(self, rows: np.ndarray, arithmetic: Arithmetic = "exact") -> np.ndarray:
        """The table, fp64 [rows, width]. `arithmetic` is the precision of the angles; sines and cosines are exact."""
        _, kind = channels(self.layout, self.width, self.odd)
        angle = self._angles(rows, arithmetic)
        table = np.where(kind == SIN, np.sin(angle), np.cos(angle)) * self.amplitude
        table[:, kind == ZERO] = 0
        return np.asarray(table)

    def _angles(self, rows: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
        at = torch.from_numpy((rows + self.offset) * self.scale)[:, None]
        omega = torch.from_numpy(self.frequencies)
        if arithmetic in ("exp_log", "power"):  # frequencies as tutorials and most RoPE code take them, in float32
            index = torch.from_numpy(channels(self.layout, self.width, self.odd)[0]).float()
            by = divisor(self.layout, self.width, self.odd, self.denominator)
            at = at.float()
            omega = (
                torch.exp(index * (-math.log(self.base) / by)) if arithmetic == "exp_log" else 1 / self.base ** (index / by)
            )
        elif arithmetic.endswith("_positions"):
            at = at.to(getattr(torch, arithmetic.removesuffix("_positions"))).double()
        elif arithmetic != "exact":
            at, omega = at.to(getattr(torch, arithmetic)), omega.to(getattr(torch, arithmetic))
        return np.asarray((at * omega).double().numpy())

    def python(self, rows: int, dtype: Rounded) -> str:
        """Code that computes the table exactly, rounded once, as `recognised`; it uses only posenc and torch."""
        if self.layout == "per_channel":
            return self._python_per_channel(rows, dtype)
        d = 2 * self.width if self.layout in ("rope_cos", "rope_sin") else self.width
        after = AFTERWARDS.get(self.layout, "")
        options = {
            "layout": (self.layout if self.layout in ("sin_cos", "cos_sin") else "interleaved", "interleaved"),
            "denominator": (self.denominator, "d/2"),
            "odd": ("zero" if self.odd == "zero" else "drop", "drop"),
            "scale": (self.scale, 1.0),
            "amplitude": (self.amplitude, 1.0),
        }
        unusual = "".join(f", {name}={value!r}" for name, (value, usual) in options.items() if value != usual)
        if not unusual and self.offset == int(self.offset):
            start = f", start={int(self.offset)}" if self.offset else ""
            return f"recognised = posenc.sinusoidal_table({rows}, {d}, {self.base!r}{start}, dtype=torch.{dtype}){after}"
        offset = f", offset={self.offset!r}" if self.offset else ""
        arguments = f"'sinusoidal', d_model={d}, base={self.base!r}{offset}{unusual}".replace("'", '"')
        return f"""encoding = posenc.create({arguments})
x = torch.zeros(1, {rows}, {d}, dtype=torch.{dtype})
recognised = encoding.embed(x, posenc.Positions.arange(1, {rows}))[0]{after}"""

    def _python_per_channel(self, rows: int, dtype: Rounded) -> str:
        at = f"torch.arange({rows}).double()[:, None]"
        at = f"({at} + {self.offset!r})" if self.offset else at
        at = f"{at} * {self.scale!r}" if self.scale != 1 else at
        exponent = f"-{'2 * ' if self.denominator == 'd/2' else ''}channel / {self.width}"
        size = f"{self.amplitude!r} * " if self.amplitude != 1 else ""
        return f"""channel = torch.arange({self.width}).double()
angle = {at} * {self.base!r} ** ({exponent})
recognised = ({size}torch.where(channel % 2 == 0, angle.sin(), angle.cos())).to(torch.{dtype})"""


# What makes the other layouts out of sines and cosines in turn.
AFTERWARDS: dict[Layout, str] = {
    "interleaved_cos": ".unflatten(1, (-1, 2)).flip(2).flatten(1)",
    "rope_cos_half": "[:, 1::2].repeat(1, 2)",
    "rope_sin_half": "[:, 0::2].repeat(1, 2)",
    "rope_cos_interleaved": "[:, 1::2].repeat_interleave(2, 1)",
    "rope_sin_interleaved": "[:, 0::2].repeat_interleave(2, 1)",
    "rope_cos": "[:, 1::2]",
    "rope_sin": "[:, 0::2]",
}
