"""RIFLEx: videos longer than those of training, without repetition, by slowing down one pair of channels.

    ω'_k = 2π/L,   k the pair of the time axis whose period is nearest to where the video begins to repeat; others unchanged

Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion Transformers", section 4, equation 8.
The authors' code multiplies with 0.9: margin=0.9.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def riflex(
    d_head: int,
    *,
    length: int = 66,
    repeats: int = 50,
    margin: float = 1.0,
    base: float = 256.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE of a time axis with the frequencies of `frequencies.riflex`; the numbers are HunyuanVideo's, twice as long.

    d_head   channels of a head, even, at least 4: the one pair of two channels is the fastest
    length   latent frames that are wanted
    repeats  the latent frame at which the model begins to repeat itself
    margin   1 in the paper, 0.9 in the authors' code
    base     of the trained frequencies
    layout   which channels make a pair

    Videos have two more axes, whose pairs stay as they are: RoPE(128, frequencies=frequencies.riflex(frequencies.separate(
    (16, 56, 56), 256.0), 66, repeats=50)) is HunyuanVideo's. Raises ValueError where the pair turns slower already.
    """
    if d_head < 4 or d_head % 2:
        raise ValueError(f"d_head: expected an even number from 4, got {d_head}")
    return RoPE(
        d_head,
        frequencies=frequencies.riflex(frequencies.rotary(d_head, base), length, repeats=repeats, margin=margin),
        layout=layout,
    )
