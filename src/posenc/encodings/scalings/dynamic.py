"""Dynamic NTK: the base grows with the length of the request, and requests within the trained length keep it.

    base' = base·(s·n/L - (s-1))^(d/(d-2))   for a request of n > L tokens

A post (emozilla, June 2023); Peng et al. 2023, "YaRN", section 3.3; transformers' rope_type "dynamic".
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def dynamic(
    d_head: int,
    *,
    factor: float = 2.0,
    trained_length: int = 2048,
    length: int = 1,
    base: float = 10000.0,
    layout: Layout = "half",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.dynamic` at `length`; `at_length(n)` is the one of a request of n tokens.

    d_head          channels of a head, even, from 4
    factor          s: how steeply the base grows
    trained_length  L, in positions
    length          tokens of the request
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.whole(4, d_head=d_head)
    family = frequencies.dynamic(frequencies.rotary(d_head, base), factor, trained_length)
    return RoPE(d_head, frequencies=family, length=length, layout=layout)
