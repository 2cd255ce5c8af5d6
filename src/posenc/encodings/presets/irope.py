"""iRoPE: three layers with RoPE, then one without, which has a temperature instead.

    layers 0, 1, 2: R(p)q · R(p')k     layer 3: (1 + 0.1·ln(1 + ⌊(i + 1)/8192⌋))·q·k     and so on

Meta 2025, Llama 4 and its code. Its rotating layers attend within chunks of 8192 tokens: attend(…, chunk=8192).
"""

from __future__ import annotations

from posenc.combined import PerLayer
from posenc.encodings.bases.temperature import FloorLogTemperature
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def irope(d_head: int, n_layers: int = 48, *, base: float = 500000.0, layout: Layout = "interleaved") -> PerLayer:
    """The encodings of Llama 4's layers; a layer takes its own with at_layer(n).

    d_head    channels of a head, even
    n_layers  layers of the model
    base      of the rotating layers
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    rotating, still = RoPE(d_head, base=base, layout=layout), FloorLogTemperature()
    return PerLayer([still if (n + 1) % 4 == 0 else rotating for n in range(n_layers)])
