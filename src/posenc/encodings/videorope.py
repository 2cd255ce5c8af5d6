"""VideoRoPE: the slowest pairs read time, the others height and width in turn.

    ω_i = base^(-2i/d);   pairs 0, 2, 4, … read width, 1, 3, 5, … height, the last d/8 time

Wei et al. 2025, "VideoRoPE: What Makes for Good Video Rotary Position Embedding?", section 4, eq. 6. The authors' code
gives the even pairs to height and the odd ones to width: order=(1, 2). Positions: posenc.positions_by("videorope_ids", …).
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def videorope(
    d_head: int, *, time: int | None = None, order: Sequence[int] = (2, 1), base: float = 1000000.0, layout: Layout = "half"
) -> RoPE:
    """RoPE with the frequencies of `frequencies.cycling`; reads (time, height, width).

    d_head  channels of a head, even
    time    pairs that read time; a quarter of all unless given, 16 of 64 in the paper
    order   the axes that the other pairs read in turn: (2, 1) width first as in the paper, (1, 2) as in its code
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for a number of pairs that a head does not have, and for an order of other axes.
    """
    checks.even(d_head=d_head)
    checks.whole(4, d_head=d_head)
    pairs = d_head // 2
    time = max(pairs // 4, 1) if time is None else time
    checks.whole(time=time)
    if time >= pairs:
        raise ValueError(f"time: expected fewer than the {pairs} pairs of d_head={d_head}, got {time}")
    if sorted(order) != [1, 2]:
        raise ValueError(f"order: expected (2, 1) or (1, 2), got {tuple(order)}")
    dealt = frequencies.cycling(frequencies.rotary(d_head, base), order, n=pairs - time, rest=0)
    return RoPE(d_head, frequencies=dealt, layout=layout)
