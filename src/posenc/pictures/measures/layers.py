"""A few layers of attention with random weights, in fp64, to which the measures are applied.

Legend: b batch, t tokens, d d_model.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float


@dataclass(frozen=True, eq=False)
class Layers:
    """Weights [out, in] of query, key, value and output, one tuple per layer."""

    weights: tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]
    d_head: int

    @classmethod
    @checked
    def draw(cls, d_model: int, n_heads: int, n_kv_heads: int | None, layers: int, random: torch.Generator) -> Layers:
        """Entries N(0, 1/fan_in), so that logits and outputs are of size one.

        Raises ValueError for sizes that do not divide.
        """
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if d_model % n_heads or n_heads % n_kv_heads:
            raise ValueError(
                f"expected d_model a multiple of n_heads and n_heads of n_kv_heads, got {d_model}, {n_heads}, {n_kv_heads}"
            )
        d_head = d_model // n_heads
        narrow = n_kv_heads * d_head
        shapes = ((d_model, d_model), (narrow, d_model), (narrow, d_model), (d_model, d_model))
        drawn = [[normal(*shape, random=random) * shape[1] ** -0.5 for shape in shapes] for _ in range(layers)]
        return cls(tuple((q, k, v, out) for q, k, v, out in drawn), d_head)

    def __call__(
        self, x: Float[Tensor, "b t d"], encoding: PositionalEncoding, at: Positions, causal: bool
    ) -> Float[Tensor, "b t d"]:
        """x ← x̃ + attention(x̃) between the layers, x̃ = at_layer(n).embed(x); returns the last layer's attention."""
        for n, (query, key, value, out) in enumerate(self.weights):
            here = encoding.at_layer(n)
            x = here.embed(x, at)
            q, k, v = (self._split(x @ weight.T) for weight in (query, key, value))
            added = attend(q, k, v, here, at, causal=causal, impl="reference").transpose(1, 2).flatten(-2) @ out.T
            x = added if n == len(self.weights) - 1 else x + added
        return x

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], -1, self.d_head).transpose(1, 2)


@torch.no_grad()
def redrawn(encoding: PositionalEncoding, random: torch.Generator) -> PositionalEncoding:
    """A copy in fp64, every parameter drawn from N(0, 0.5²): a table that starts at or near zero would hide its seam."""
    drawn = copy.deepcopy(encoding).to("cpu", torch.float64)
    for parameter in drawn.parameters():
        parameter.copy_(normal(*parameter.shape, random=random) * 0.5)
    return drawn


def normal(*shape: int, random: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=random, dtype=torch.float64)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
