"""Abacus: a digit's position is its place in its number; all other tokens share position 0.

    p = 1 + β, 2 + β, 3 + β, …   for the digits of each number in turn,   p = 0 for what is no digit

McLeish et al. 2024, "Transformers Can Do Arithmetic with the Right Embeddings", section 3. β is drawn once for the whole
batch in training, 0 … 99 in the authors' code, so that longer numbers meet known positions; in use it is 0. Numbers are
written with the least significant digit first, so that digits of the same significance have the same position. A learned
table turns the positions into vectors: posenc.create("learned", d_model=…, max_positions=…).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Bool


@checked
def abacus(digits: Bool[Tensor, "b t"], *, max_shift: int = 0, generator: torch.Generator | None = None) -> Positions:
    """Positions counted within every run of digits.

    digits     [b, t], True where a token is a digit
    max_shift  the largest β; 99 in the authors' training, 0 in use
    generator  the source of the random numbers; torch's own if left out

    Raises ValueError for a mask without tokens or a negative shift.
    """
    checks.whole(0, max_shift=max_shift)
    with_values(digits=digits)
    index = torch.arange(1, digits.shape[1] + 1, device=digits.device).expand_as(digits)
    before = index.masked_fill(digits, 0).cummax(dim=1).values  # the last token that is no digit, counted from 1
    shift = torch.randint(max_shift + 1, (), generator=generator).to(digits.device)
    return Positions.at((index - before + shift) * digits)
