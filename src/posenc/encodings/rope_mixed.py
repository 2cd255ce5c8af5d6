"""RoPE-Mixed: every pair of every head turns by a learned combination of the coordinates.

    angle of pair i in head h = Σ_a p_a·ω_ahi,   all ω learned

Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", section 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_rope import MixedRoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def rope_mixed(
    d_head: int, n_heads: int, *, axes: int = 2, base: float = 10.0, layout: Layout = "interleaved"
) -> MixedRoPE:
    """`MixedRoPE` for images.

    d_head   channels of a head, a multiple of 4
    n_heads  heads, of queries and of keys
    axes     coordinates of a token
    base     of the frequencies that it starts from; 10 in the authors' code
    layout   which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return MixedRoPE(d_head, n_heads, axes=axes, base=base, layout=layout)


ENTRY = Entry(
    name="rope_mixed",
    class_name="MixedRoPE",
    builder="rope_mixed",
    title="RoPE-Mixed",
    kind="rotated",
    published="2024-03",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width)",
    both_ways=True,
    formula="R(Σ_a p_a ω_a)q, ω learned",
    also_called=("rope_vit", "mixed_rope", "RoPEMixed"),
    used_by=("research: ViT and Swin by its authors", "Mochi (three axes)"),
)
