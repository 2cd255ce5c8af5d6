"""CAPE: in training, positions are shifted, jittered and stretched at random, and are real numbers.

    p' = λ·(p + Δ + ε_p),   Δ ~ U(-D, D),  ε_p ~ U(-e, e),  ln λ ~ U(-ln L, ln L);   Δ and λ of the row, ε_p of the token

Likhomanenko et al. 2021, "CAPE: Encoding Relative Positions with Continuous Augmented Positional Embeddings".
With e up to 0.5 tokens keep their order. DAPE was also named CAPE once.
"""

from __future__ import annotations

import math

import torch

from posenc.positions import Positions
from posenc.support.checked import checked


@checked
def cape(
    batch: int,
    length: int,
    *,
    max_shift: float = 5.0,
    max_jitter: float = 0.5,
    max_stretch: float = 1.03,
    generator: torch.Generator | None = None,
) -> Positions:
    """Augmented real positions, for encodings that read real numbers: sinusoids in the paper.

    batch        rows
    length       tokens of a row
    max_shift    D, in positions; 5 in the paper's recipe for translation
    max_jitter   e, in positions, up to 0.5
    max_stretch  L, from 1
    generator    the source of the random numbers; torch's own if left out

    In use, with neither shift nor jitter nor stretch, positions are Positions.arange(batch, length).
    Raises ValueError for numbers outside these ranges.
    """
    for name, value, low, high in (
        ("max_shift", max_shift, 0.0, math.inf),
        ("max_jitter", max_jitter, 0.0, 0.5),
        ("max_stretch", max_stretch, 1.0, math.inf),
    ):
        if not low <= value <= high or math.isinf(value):
            raise ValueError(f"{name}: expected a number from {low:g} to {high:g}, got {value!r}")

    def drawn(most: float, *shape: int) -> torch.Tensor:
        return (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * most

    plain = torch.arange(length, dtype=torch.float64)
    moved = plain + drawn(max_shift, batch, 1) + drawn(max_jitter, batch, length)
    return Positions.at(moved * drawn(math.log(max_stretch), batch, 1).exp())
