"""ModernBERT: every third layer sees everything, with its own base.

    layers 0, 3, 6, …: ω_i = 160 000^(-2i/d)     all others: ω_i = 10 000^(-2i/d), in a window

Warner et al. 2024, "Smarter, Better, Faster, Longer", section 2.1. The window belongs to the call: attend(…, window=128).
"""

from __future__ import annotations

from posenc.combined import PerLayer
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def modernbert(
    d_head: int, n_layers: int = 22, *, base: float = 160000.0, local_base: float = 10000.0, layout: Layout = "half"
) -> PerLayer:
    """The encodings of ModernBERT's layers, for attention both ways; a layer takes its own with at_layer(n).

    d_head      channels of a head, even
    n_layers    layers of the model
    base        of the full layers
    local_base  of the layers with a window
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    far, near = RoPE(d_head, base=base, layout=layout), RoPE(d_head, base=local_base, layout=layout)
    return PerLayer([far if n % 3 == 0 else near for n in range(n_layers)])
