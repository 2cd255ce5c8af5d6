"""RoVE: values turn as well, and the output turns back by the position of the query.

    o_i = R(i)ᵀ Σ_j a_ij R(j) v_j

Su 2025, a post (kexue.fm 10862), where it is VO-RoPE; others call it RoVE. Shipped in DeepSeek-V4, whose keys are its
values.
"""

from __future__ import annotations

from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def rove(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> RoPE:
    """RoPE with sides ("query", "key", "value", "output").

    d_head  channels of a head, even
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return RoPE(d_head, base=base, layout=layout, sides=("query", "key", "value", "output"))
