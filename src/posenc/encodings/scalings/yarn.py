"""YaRN: fast pairs keep their frequency, slow pairs are interpolated, a ramp joins them, and attention is sharpened.

    ω_i' = ω_i·(1-γ_i) + ω_i/s·γ_i,   γ_i rises from 0 to 1, linearly in i, between the pairs that turn 32 times and once
    in the trained length; cos and sin are multiplied by 0.1·ln s + 1

Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", sections 3.2 to 3.4, with the
ramp of their code: the paper's γ, equation 18, is linear in turns.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def yarn(
    d_head: int,
    *,
    factor: float = 16.0,
    trained_length: int = 4096,
    base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    layout: Layout = "half",
) -> RoPE:
    """RoPE with the frequencies of `frequencies.yarn`; the defaults are those of the paper's Llama 2 with 64k tokens.

    d_head          channels of a head, even
    factor          s: the length wanted over the trained one
    trained_length  the trained length, in positions
    base            of the trained frequencies
    beta_fast       pairs that turn at least as often within trained_length are kept
    beta_slow       pairs that turn at most as often are divided by factor
    layout          which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    trained = frequencies.rotary(d_head, base)
    scaled = frequencies.yarn(trained, factor, trained_length, beta_fast=beta_fast, beta_slow=beta_slow)
    return RoPE(d_head, frequencies=scaled, layout=layout)
