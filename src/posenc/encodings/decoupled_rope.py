"""Decoupled RoPE of latent attention: the last channels of a head turn, the first ones carry content only.

    q = [q_content | R(p) q_position],   k likewise

DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.3: 64 of 192 channels turn, and one key of them serves all heads.
"""

from __future__ import annotations

from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def decoupled_rope(
    d_head: int, *, rotary_dim: int | None = None, base: float = 10000.0, layout: Layout = "interleaved"
) -> RoPE:
    """RoPE on the last channels: `trailing`.

    d_head      channels of a head, content and position together
    rotary_dim  channels that turn, an even number; about a third of d_head unless given
    base        of the frequencies
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    checks.whole(2, d_head=d_head)
    turning = max(d_head // 6 * 2, 2) if rotary_dim is None else rotary_dim
    return RoPE(d_head, rotary_dim=turning, trailing=True, base=base, layout=layout)
