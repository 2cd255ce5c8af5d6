"""Gemma 3: five sliding layers with a base of 10 000, then one over everything with 1 000 000, interpolated.

    layers 0 … 4: ω_i = 10⁴^(-2i/d)     layer 5: ω_i = 10⁶^(-2i/d)/8     and so on

Gemma Team 2025, "Gemma 3 Technical Report", section 2. The window belongs to the call: attend(…, window=1024).
"""

from __future__ import annotations

from posenc import frequencies
from posenc.combined import PerLayer
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def gemma3(
    d_head: int,
    n_layers: int = 62,
    *,
    factor: float = 8.0,
    base: float = 1000000.0,
    local_base: float = 10000.0,
    layout: Layout = "half",
) -> PerLayer:
    """The encodings of Gemma 3's layers; a layer takes its own with at_layer(n).

    d_head      channels of a head, even
    n_layers    layers of the model; 62 in that of 27 billion parameters
    factor      by which the full layers are interpolated; 1 before the context was extended
    base        of the full layers
    local_base  of the sliding layers
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    near = RoPE(d_head, frequencies=frequencies.rotary(d_head, local_base), layout=layout)
    far = RoPE(d_head, frequencies=frequencies.linear(frequencies.rotary(d_head, base), factor), layout=layout)
    return PerLayer([far if (n + 1) % 6 == 0 else near for n in range(n_layers)])
