"""Pictures of the measures: every function here returns a matplotlib Figure.

    posenc.plots.heatmap(encoding, length=50, width=128).savefig("heatmap.png")

The numbers of a picture, without drawing it, come from the function of the same name in `tables`, `scores` and `order`;
`terminal` draws them in a terminal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

from posenc.pictures.plots import order as _order
from posenc.pictures.plots import scores as _scores
from posenc.pictures.plots import tables as _tables
from posenc.pictures.plots.figures import figure as figure
from posenc.pictures.plots.figures import save as save
from posenc.pictures.plots.picture import Picture as Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")


def _drawn(build: Callable[P, Picture]) -> Callable[P, Figure]:
    @functools.wraps(build)
    def draw(*args: P.args, **kwargs: P.kwargs) -> Figure:
        return figure(build(*args, **kwargs))

    return draw


heatmap = _drawn(_tables.heatmap)
waves = _drawn(_tables.waves)
clock = _drawn(_tables.clock)
wavelengths = _drawn(_tables.wavelength_ladder)
shift = _drawn(_tables.shift)
angles = _drawn(_tables.angles)
path = _drawn(_tables.path)
distance = _drawn(_tables.distance)
decay = _drawn(_scores.decay)
sinusoidal_decay = _drawn(_scores.sinusoidal_decay)
rope_decay = _drawn(_scores.rope_decay)
bias = _drawn(_scores.bias)
terms = _drawn(_scores.terms)
order_sensitivity = _drawn(_order.order)
taylor = _drawn(_order.taylor)
remainder = _drawn(_order.remainder)
