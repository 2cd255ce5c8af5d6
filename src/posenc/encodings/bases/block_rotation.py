"""Rotations of whole blocks of channels: what ComRoPE and LieRE share.

    R(p) = exp(G(p)) in each block, G skew: a class says `exponents`

Legend: b batch, h heads, g generators' heads, t tokens, a axes, n blocks, s channels of a block.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.kernels.eager import exporting
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import (
    check_coords,
    floating,
    for_heads,
    full_precision,
    into,
    on_device_of,
    rotates,
    tables_at,
    working_dtype,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class BlockRotation(PositionalEncoding):
    """Blocks of queries and keys multiplied with exp(G(p)), G(p) skew and made of learned generators.

    Time O(t·g·d_head·block²) for exponentials in fp64, and O(t·heads·d_head·block) to turn.
    Raises ValueError for blocks that do not fill the head and heads that cannot be shared.
    """

    learned_tables = True

    def __init__(
        self, d_head: int, n_heads: int, *, n_kv_heads: int | None, axes: int, block: int | None, **configuration: Any
    ) -> None:
        if block is None:
            checks.even(d_head=d_head)
            block = math.gcd(d_head, 8)
        checks.whole(2, block=block)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        super().__init__(d_head=d_head, n_heads=n_heads, n_kv_heads=n_kv_heads, axes=axes, block=block, **configuration)
        if d_head % block:
            raise ValueError(f"block: d_head={d_head} cannot be shared evenly by blocks of {block} channels")
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        self.d_head, self.n_heads, self.key_heads = d_head, n_heads, key_heads
        self.block, self.blocks, self.axes = block, d_head // block, axes

    @abstractmethod
    def exponents(self, coords: Float[Tensor, "b t a"]) -> Float[Tensor, "b t g n s s"]:
        """G of every token, generators' head and block, in fp64."""

    @abstractmethod
    def copy_heads(self, part: Self, rows: list[int]) -> None:
        """Copies these rows of the generators to `part`, and what all heads share."""

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """R of every token, generators' head and block, [b, t, g·n·s·s], with memory of their own."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(next(self.parameters()), at=at.coords)
        coords = (at.coords if at.coords.ndim == 3 else at.coords[..., None]).double()
        with full_precision(coords):
            return (skew_exponential(self.exponents(coords)).to(dtype).flatten(2).clone(),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        (rotation,) = tables_at(self, at, x.dtype)
        with full_precision(x):
            rotation = rotation.unflatten(2, (self.key_heads, self.blocks, self.block, self.block))
            rotation = for_heads(self, rotation, x, "generators")  # [b, h, t, n, s, s]
            blocks = x.to(working_dtype(x.dtype)).contiguous().unflatten(-1, (-1, self.block))
            turned = (rotation * blocks[..., None, :]).sum(dim=-1).flatten(-2)
        return into(turned.to(x.dtype), out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> Self:
        """The slice's query heads, each with generators of its own."""
        part = type(self)(**{**self.configuration, "n_heads": stop - start, "n_kv_heads": stop - start})
        part.to(next(self.parameters()))
        self.copy_heads(part, [head // (self.n_heads // self.key_heads) for head in range(start, stop)])
        return part


def skew_exponential(matrices: Float[Tensor, "*b s s"]) -> Float[Tensor, "*b s s"]:
    """exp of skew matrices in fp64.

    ONNX has no such operator. In an exported graph exp(A) = exp(A/2²⁰)^(2²⁰), by eight terms of the series, 20 squarings.
    For ‖A‖ up to 10⁵ the error is below 10⁻⁸.
    """
    if not exporting():
        exact: Tensor = torch.matrix_exp(matrices)
        return exact
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    small = matrices / 2**20
    exponential = eye
    for term in range(8, 0, -1):
        exponential = eye + small @ exponential / term
    for _ in range(20):
        exponential = exponential @ exponential
    return exponential
