"""NTK by parts: YaRN's frequencies without its magnitude.

    ω_i' = ω_i·(1-γ_i) + ω_i/s·γ_i,   γ_i rises from 0 to 1, linearly in i, between the pairs that turn 32 times and once
    in the trained length

Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", section 3.2, with the ramp of
their code: in definition 2 γ is linear in turns, as in `frequencies.llama3`.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def ntk_by_parts(
    d_head: int, *, factor: float = 16.0, trained_length: int = 4096, base: float = 10000.0, layout: Layout = "half"
) -> RoPE:
    """RoPE with the frequencies of `frequencies.yarn`, and cos and sin as they are.

    d_head          channels of a head, even
    factor          s: the length wanted over the trained one
    trained_length  the trained length, in positions
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    scaled = frequencies.yarn(frequencies.rotary(d_head, base), factor, trained_length, attention_factor=1.0)
    return RoPE(d_head, frequencies=scaled, layout=layout)
