"""LookHere: every head looks in one direction of the image, and less at what is far away.

    logits += -g·l_n·s_h·|p_i - p_j|   where head h looks,   -∞ elsewhere
    l_n falls from 1.5 in the first layer to 0.5 in the last

Fuller et al. 2024, "LookHere: Vision Transformers with Directed Attention Generalize and Extrapolate", section 3, and the
authors' code. Fields of view, slopes and g = 2 are those of LH-90 for 12 and 16 heads, as PaPE's authors give its
configuration: heads in fours look into a corner of 90°, then into a triangle of 90°, the last four at everything.
Legend: b batch, h query heads, i query, j key, n layers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.kernels.eager import constant
from posenc.positions import Positions, own_rows
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Bool

FIRST, LAST = 1.5, 0.5  # the slopes' factor in the first layer and in the last
# A head sees keys for which down·Δy + across·Δx ≤ 0 for both pairs (down, across), Δ from the query to the key.
FIELDS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "all": ((0, 0), (0, 0)),
    "half_up": ((1, 0), (0, 0)),
    "half_down": ((-1, 0), (0, 0)),
    "half_left": ((0, 1), (0, 0)),
    "half_right": ((0, -1), (0, 0)),
    "corner_up_left": ((1, 0), (0, 1)),
    "corner_up_right": ((1, 0), (0, -1)),
    "corner_down_left": ((-1, 0), (0, 1)),
    "corner_down_right": ((-1, 0), (0, -1)),
    "triangle_up": ((1, -1), (1, 1)),
    "triangle_down": ((-1, 1), (-1, -1)),
    "triangle_left": ((1, 1), (-1, 1)),
    "triangle_right": ((1, -1), (-1, -1)),
}


def _of_heads(n_heads: int) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Field and slope of every head: fours of corners, four triangles, four that see all; see the head of this file."""
    corners, triangles = ([name for name in FIELDS if name.startswith(shape)] for shape in ("corner", "triangle"))
    fours = -(-n_heads // 4)
    of_corners = max(fours - 2, 1)
    fields, slopes = corners * of_corners, [2.0 ** -(four + 1) for four in range(of_corners) for _ in corners]
    fields, slopes = [*fields, *triangles, *["all"] * 4], [*slopes, *[0.5] * 4, *(4.0**-n for n in range(1, 5))]
    return tuple(fields[:n_heads]), tuple(slopes[:n_heads])


class LookHere(PositionalEncoding):
    """A field of view for each head, and a penalty on distance within it. No parameters, any size of image.

    n_heads   query heads
    n_layers  of the model; at_layer(n) is the encoding of layer n
    fields    of each head, of FIELDS; as in LH-90 unless given
    slopes    of each head; as in LH-90 unless given
    strength  g, for all heads and layers
    layer     the layer that this is the encoding of

    Coordinates are (row, column), and a token at a negative one is a class token: it sees all, all see it, and no distance
    counts. Where a mask hides all that a head sees, its output is zeros. Time and memory O(queries·keys).
    Raises ValueError for other fields, for numbers that do not fit the heads, and for a layer beyond the last.
    """

    traits = frozenset({"local", "norm_preserving"})  # a class token's coordinate is a mark
    axes = 2

    @checked
    def __init__(
        self,
        n_heads: int,
        *,
        n_layers: int = 12,
        fields: tuple[str, ...] | None = None,
        slopes: tuple[float, ...] | None = None,
        strength: float = 2.0,
        layer: int = 0,
    ) -> None:
        checks.whole(n_heads=n_heads, n_layers=n_layers)
        checks.whole(0, layer=layer)
        checks.finite(strength=strength)
        checks.moderate(strength=strength)
        fields = _of_heads(n_heads)[0] if fields is None else tuple(fields)
        slopes = _of_heads(n_heads)[1] if slopes is None else tuple(map(float, slopes))
        super().__init__(n_heads=n_heads, n_layers=n_layers, fields=fields, slopes=slopes, strength=strength, layer=layer)
        for field in fields:
            checks.one_of(tuple(FIELDS), fields=field)
        if not len(fields) == len(slopes) == n_heads or not all(map(math.isfinite, slopes)):
            raise ValueError(
                f"fields, slopes: expected one of each for every one of {n_heads} heads, slopes finite, "
                f"got {fields} and {slopes}"
            )
        if layer >= n_layers:
            raise ValueError(f"layer: expected one of 0 … {n_layers - 1}, got {layer}")
        falls = strength * (FIRST + (LAST - FIRST) * layer / max(n_layers - 1, 1))
        self.fields, self.falls = fields, tuple(falls * slope for slope in slopes)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        if q.shape[1] != len(self.fields):
            raise ValueError(f"LookHere: built for n_heads={len(self.fields)}, q has {q.shape[1]} heads")
        for at in (at_q, at_k):
            check_coords(self, at)
        query, key, device = at_q.coords, at_k.coords, q.device
        falls = constant(self.falls, torch.float64, device)
        numbers = tuple(float(number) for field in self.fields for pair in FIELDS[field] for number in pair)
        edges = constant(numbers, torch.float64, device).view(-1, 2, 2)  # [h, edge, (down, across)]

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            offset = (key[b, j] - query[b, i]).double()
            down, across = offset[..., 0], offset[..., 1]
            hidden = down * edges[h, 0, 0] + across * edges[h, 0, 1] > 0
            hidden = hidden | (down * edges[h, 1, 0] + across * edges[h, 1, 1] > 0)
            term = (-falls[h] * (down.square() + across.square()).sqrt()).masked_fill(hidden, -torch.inf)
            return term.masked_fill(_marked(query[b, i]) | _marked(key[b, j]), 0.0).to(q.dtype)

        return of_pair

    def at_layer(self, n: int) -> LookHere:
        checks.whole(0, n=n)
        return LookHere(**{**self.configuration, "layer": n})

    def heads(self, start: int, stop: int) -> LookHere:
        part = {"fields": self.fields[start:stop], "slopes": self.configuration["slopes"][start:stop]}
        return LookHere(**{**self.configuration, "n_heads": stop - start, **part})


def _marked(coords: Tensor) -> Bool[Tensor, "*s"]:
    """Whether these are coordinates of class tokens."""
    marked: Tensor = (coords < 0).any(dim=-1)
    return marked
