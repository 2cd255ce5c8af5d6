"""Position coupling for addition: digits of the same significance have the same position in all operands and the answer.

    $   a₂    a₁    a₀    +   b₂    b₁    b₀    =   c₀    c₁    c₂    c₃
    0   s+3   s+2   s+1   s   s+3   s+2   s+1   s   s+1   s+2   s+3   s+4

Cho et al. 2024, "Position Coupling: Improving Length Generalization of Arithmetic Transformers Using Task Structure",
section 3. s is drawn for each row in training and is 1 in use. Operands are padded with zeros to one length in the paper,
and the answer is written from its least significant digit on. With a plain answer, "=" has s here, as in the authors' code
for several operands; their code for two gives it the position after the answer's first digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


@checked
def position_coupling(
    lengths: Sequence[int],
    *,
    answer: int | None = None,
    reversed_operands: bool = False,
    reversed_answer: bool = True,
    batch: int = 1,
    max_start: int = 1,
    generator: torch.Generator | None = None,
) -> Positions:
    """Positions of a start token, operands joined by "+", "=" and the answer.

    lengths            digits of every operand
    answer             digits of the answer; None: one more than the longest operand has
    reversed_operands  operands begin with their least significant digit
    reversed_answer    so does the answer
    batch              rows, of the same lengths
    max_start          s is drawn from 1 … max_start for every row
    generator          the source of the random numbers; torch's own if left out

    Raises ValueError for an operand without digits, and where there is none.
    """
    if not lengths:
        raise ValueError("lengths: expected the digits of at least one operand, got none")
    for length in lengths:
        checks.whole(lengths=length)
    answer = max(lengths) + 1 if answer is None else answer
    checks.whole(answer=answer, batch=batch, max_start=max_start)
    places = [place for length in lengths for place in (0, *_places(length, reversed_operands))][1:]
    places += [0, *_places(answer, reversed_answer)]
    start = 1 + torch.randint(max_start, (batch, 1), generator=generator)
    return Positions.at(torch.cat([torch.zeros_like(start), start + torch.tensor(places)], dim=1))


def _places(length: int, backwards: bool) -> list[int]:
    """1 for the least significant digit, in the order in which the digits are written."""
    return list(range(1, length + 1) if backwards else range(length, 0, -1))
