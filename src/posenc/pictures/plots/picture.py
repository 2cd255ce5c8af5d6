"""The content of a picture before it is drawn: numbers, names and two lines of explanation.

The same value is drawn by matplotlib (`figures`), in the terminal (`terminal`), and printed as JSON (`data`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Float


@dataclass(frozen=True, eq=False)
class Picture:
    """title: what is shown; idea: two lines that explain the picture, with the main numbers."""

    title: str
    idea: tuple[str, str]

    def data(self) -> dict[str, Any]:
        """The content as lists, strings and numbers; None in place of NaN."""
        return {"kind": type(self).__name__.lower()} | {
            field.name: _plain(getattr(self, field.name)) for field in fields(self)
        }


@dataclass(frozen=True, eq=False)
class Panel:
    title: str
    values: Float[Tensor, "rows columns"]  # NaN where there is nothing


@dataclass(frozen=True, eq=False)
class Matrices(Picture):
    """Blue is negative, white zero, red positive; `cyclic` for angles, 0 … 2π."""

    panels: tuple[Panel, ...]
    rows: str
    columns: str
    unit: str
    limit: float  # the scale runs from -limit to +limit; larger values take its last colour
    cyclic: bool = False
    paired: bool = False  # neighbouring columns belong together and are thinned together
    steps: tuple[float, ...] = ()  # sizes at even distances along the scale, from 0 to limit; empty: the scale is linear

    def on_the_scale(self, values: Tensor) -> Tensor:
        """Where values stand on the scale of colours, from -1 to 1."""
        if not self.steps:
            return (values / self.limit).clamp(-1.0, 1.0)
        steps, size = torch.tensor(self.steps, dtype=values.dtype), values.abs().clamp(max=self.limit)
        above = torch.searchsorted(steps, size.nan_to_num()).clamp(1, len(steps) - 1)
        share = (size - steps[above - 1]) / (steps[above] - steps[above - 1])
        return (above - 1 + share) / (len(steps) - 1) * values.sign()

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values that the key of the scale names, from -limit to limit."""
        sizes = self.steps[1:] or (self.limit / 2, self.limit)
        return (*(-size for size in reversed(sizes)), 0.0, *sizes)


@dataclass(frozen=True, eq=False)
class Line:
    name: str
    x: Float[Tensor, "n"]
    y: Float[Tensor, "n"]
    points: bool = False  # dots, not a line through them


@dataclass(frozen=True, eq=False)
class Mark:
    """A point of a curve with a label."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, eq=False)
class Curves(Picture):
    lines: tuple[Line, ...]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    marks: tuple[Mark, ...] = ()
    rule: Mark | None = None  # a level drawn across, at y
    stacked: bool = False  # one below the other instead of overlaid


@dataclass(frozen=True, eq=False)
class Group:
    """One bar for every name; None where it is not defined."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Bars(Picture):
    """Lengths are sizes on a logarithmic scale from `floor`; the colour says the sign where `signed`."""

    names: tuple[str, ...]
    groups: tuple[Group, ...]
    unit: str
    floor: float
    signed: bool = False
    absent: str = ""  # what to write where there is no bar


@dataclass(frozen=True, eq=False)
class Clocks(Picture):
    """A hand for every position and pair, turning clockwise from twelve as the position grows."""

    positions: tuple[int, ...]
    pairs: tuple[int, ...]
    wavelengths: tuple[float, ...]
    angles: Float[Tensor, "positions pairs"]


@dataclass(frozen=True, eq=False)
class Path(Picture):
    """A path in the plane, one point per position."""

    points: Float[Tensor, "t 2"]
    share: float  # of the variance that the plane shows


def number(value: float) -> str:
    """Three digits, a true minus, thin spaces between thousands: −0.213, 54 410, 6.03e−5."""
    if value == 0:
        return "0"  # not −0
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", "\u2009").replace("-", "−")
    return f"{value:.3g}".replace("e-0", "e-").replace("-", "−")


def rounded(value: float) -> str:
    """Two digits: 0.56, −2.3e−3, 6.7e−16."""
    return number(float(f"{value:.2g}")) if abs(value) >= 0.01 else f"{value:.1e}".replace("e-0", "e-").replace("-", "−")


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value
