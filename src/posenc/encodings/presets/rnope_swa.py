"""RNoPE-SWA: three layers with RoPE and a sliding window, then one without positions that sees everything.

    layers 0, 1, 2: R(p)q · R(p')k     layer 3: q·k     and so on

Yang et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy"; Command A.
The window belongs to the call: attend(…, window=4096) in the rotating layers.
"""

from __future__ import annotations

from posenc.combined import PerLayer
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def rnope_swa(
    d_head: int, n_layers: int = 32, *, period: int = 4, base: float = 10000.0, layout: Layout = "interleaved"
) -> PerLayer:
    """The encodings of the layers; a layer takes its own with at_layer(n).

    d_head    channels of a head, even
    n_layers  layers of the model
    period    every so many layers, the last one has no positions
    base      of the rotating layers
    layout    which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    checks.whole(period=period)
    rotating, still = RoPE(d_head, base=base, layout=layout), NoPE()
    return PerLayer([still if (n + 1) % period == 0 else rotating for n in range(n_layers)])
