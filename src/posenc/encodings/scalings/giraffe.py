"""Giraffe: pairs that never finish a turn in training get one slow frequency or none; or all are slowed by a power.

    truncated   ω' = ω where ω ≥ 2π/L,   2π/(16 L) where 2π/(8 L) ≤ ω < 2π/L,   0 where ω < 2π/(8 L)
    power       ω'_i = ω_i·(1 - 2i/d)^k

Pal et al. 2023, "Giraffe: Adventures in Expanding Context Lengths in LLMs", and the authors' code, whose numbers these are.
Where both are asked for, the power comes first.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def giraffe(
    d_head: int, *, trained_length: int | None = 2048, power: float = 0.0, base: float = 10000.0, layout: Layout = "half"
) -> RoPE:
    """RoPE with the frequencies of `frequencies.power` and `frequencies.truncated`.

    d_head          channels of a head, even
    trained_length  L, in positions; None: no pair is truncated
    power           k; 0: no pair is slowed; the authors try 0.5
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit and a negative power.
    """
    if power < 0:
        raise ValueError(f"power: expected a number from 0, got {power}")
    scaled = frequencies.rotary(d_head, base)
    if power:
        scaled = frequencies.power(scaled, power)
    if trained_length is not None:
        scaled = frequencies.truncated(scaled, trained_length)
    return RoPE(d_head, frequencies=scaled, layout=layout)
