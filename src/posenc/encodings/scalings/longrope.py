"""LongRoPE: a factor for each pair, found by search, one set for short requests and one for long ones.

    ω'_i = ω_i/λ_i,   cos and sin × √(1 + ln s/ln L)

Ding et al. 2024, "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", sections 3.2 and 3.3; Phi-3's code.
LongRoPE2 (Shang et al. 2025) searches the factors otherwise; its models read them in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def longrope(
    d_head: int,
    *,
    short_factor: Sequence[float] | None = None,
    long_factor: Sequence[float] | None = None,
    factor: float = 32.0,
    trained_length: int = 4096,
    length: int = 1,
    base: float = 10000.0,
    layout: Layout = "half",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.longrope` at `length`; `at_length(n)` is the one of n tokens.

    d_head          channels of a head, even
    short_factor    a factor for each pair up to trained_length; 1 for all unless given
    long_factor     a factor for each pair beyond; unless given NTK's, s^(2i/(d-2)), where the paper's search may start
    factor          s: the longest length over the trained one; 32 in Phi-3 with 128k tokens
    trained_length  the trained length L, in positions
    length          tokens of the request
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    pairs = d_head // 2
    short = [1.0] * pairs if short_factor is None else short_factor
    long = [factor ** (i / max(pairs - 1, 1)) for i in range(pairs)] if long_factor is None else long_factor
    family = frequencies.longrope(frequencies.rotary(d_head, base), short, long, trained_length, factor=factor)
    return RoPE(d_head, frequencies=family, length=length, layout=layout)
