"""Which coordinates an encoding reads, and which tokens it leaves alone: shared by encodings of several coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Bool

Silent = Literal["none", "padding", "negative", "outside"]


def check_reads(reads: Sequence[int] | None, axes: int) -> tuple[int, ...]:
    """The coordinate that each block reads: all in turn unless said. Raises ValueError for one that there is not."""
    chosen = tuple(range(axes)) if reads is None else tuple(reads)
    if not chosen or any(isinstance(axis, bool) or axis not in range(axes) for axis in chosen):
        raise ValueError(f"reads: expected coordinates 0 … {axes - 1}, got {reads}")
    return chosen


def select(at: Positions, reads: Sequence[int]) -> Positions:
    """The same tokens with the coordinates that are read, in the order in which they are read."""
    axes = 1 if at.coords.ndim == 2 else at.coords.shape[2]
    if tuple(reads) == tuple(range(axes)):
        return at
    coords = at.coords[..., None] if at.coords.ndim == 2 else at.coords
    return at.replaced(coords=coords[..., list(reads)], tables={})


def silent_tokens(at: Positions, silent: Silent) -> Bool[Tensor, "b t"]:
    """Tokens that get no encoding.

    none        of them
    padding     those that belong to no document
    negative    those whose coordinates are all negative
    outside     those with a negative coordinate, such as the tokens that Positions.grid puts before the patches
    """
    if silent == "none":
        return torch.zeros_like(at.document, dtype=torch.bool)
    if silent == "padding":
        return at.document < 0
    negative = at.coords < 0
    if negative.ndim == 2:
        return negative
    return negative.any(dim=-1) if silent == "outside" else negative.all(dim=-1)
