"""PaTH with a forget gate.

    k_jᵀ H_{j+1} … H_i q_i / √d + Σ_{t = j+1 … i} ln f_t

Yang et al. 2025, "PaTH Attention", section 2 (PaTH-FoX). The gates are added after the scale, as FoX does;
flash-linear-attention divides them by √d too.
"""

from __future__ import annotations

from posenc.combined import Stack
from posenc.encodings.fox import FoX
from posenc.encodings.path import PaTH
from posenc.support.checked import checked


@checked
def path_fox(d_model: int, n_heads: int, d_head: int, *, n_kv_heads: int | None = None) -> Stack:
    """Stack(PaTH(…), FoX(…)): the path in the place of q·k, and the running sum of the gates.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    d_head      channels of a head
    n_kv_heads  key heads, each with a path of its own; None: n_heads
    """
    return Stack(PaTH(d_model, n_heads, d_head, n_kv_heads=n_kv_heads), FoX(d_model, n_heads))
