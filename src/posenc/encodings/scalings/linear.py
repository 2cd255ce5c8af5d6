"""Position interpolation: positions are divided by the extension, so that all of them fall into the trained range.

    ω' = ω/s   which is   p' = p/s

Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation", section 2.3.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def linear(d_head: int, *, factor: float = 16.0, base: float = 10000.0, layout: Layout = "half") -> RoPE:
    """RoPE with the frequencies of `frequencies.linear`; 16 takes the paper's models from 2048 to 32768 tokens.

    d_head           channels of a head, even
    factor           s: the length wanted over the trained one
    base             of the trained frequencies
    layout           which channels make a pair; models on the hub have "half"

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, frequencies=frequencies.linear(frequencies.rotary(d_head, base), factor), layout=layout)
