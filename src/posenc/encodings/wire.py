"""WIRE: RoPE on a graph. Angles come from a node's coordinates in the graph's spectrum.

    angle of pair i at node n = Σ_m ω_mi·u_mn,   u the slowest eigenvectors of the Laplacian, ω learned

Reid et al. 2025, "Wavelet-Induced Rotary Encodings: RoPE Meets Graphs", section 3. The coordinates are those of
posenc.positions_by("lappe", …); the paper takes the Laplacian D - A, normalized=False. The sum is RoPE-Mixed's
(rope_mixed.py) with as many axes; the paper derives RoPE on grids from it. There is no code by the authors: the fresh ω,
N(0, scale²), is posenc's choice.
"""

from __future__ import annotations

import torch

from posenc.encodings.bases.learned_rope import MixedRoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


class WIRE(MixedRoPE):
    """`MixedRoPE` over spectral coordinates.

    d_head   channels of a head, a multiple of 4
    n_heads  heads, of queries and of keys
    axes     eigenvectors that are read
    scale    of the fresh frequencies
    layout   which channels make a pair

    Parameter: frequencies ω, [axes, n_heads, d_head/2].
    Time O(t·heads·d_head·axes) for the angles. Raises ValueError for sizes that do not fit.
    """

    @checked
    def __init__(
        self, d_head: int, n_heads: int, *, axes: int = 8, scale: float = 1.0, layout: Layout = "interleaved"
    ) -> None:
        checks.positive(scale=scale)
        checks.moderate(scale=scale)
        super().__init__(d_head, n_heads, axes=axes, layout=layout)
        self._configure(d_head=d_head, n_heads=n_heads, axes=axes, scale=scale, layout=layout)
        torch.nn.init.normal_(self.frequencies, std=scale)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> WIRE:
        part = WIRE(**{**self.configuration, "n_heads": stop - start}).to(self.frequencies)
        part.frequencies.copy_(self.frequencies[:, start:stop])
        return part
