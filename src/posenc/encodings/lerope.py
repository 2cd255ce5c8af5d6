"""LeRoPE: RoPE whose frequencies are learned, each as a factor of its own.

    ω'_i = ω_i·exp(α_i),   α learned, 0 when fresh

Karypis et al. 2026, "LeRoPE: Learnable RoPE Frequencies Improve Language Modeling", arXiv 2607.10134: one α for each pair,
shared by all layers and heads. Mistral-Large-4 ships it. GRAPE-M's learned log-frequencies (arXiv 2512.07805) are the same
per head.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_rope import LeRoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked


@checked
def lerope(d_head: int, *, base: float = 10000.0, layout: Layout = "interleaved") -> LeRoPE:
    """`LeRoPE`, which takes all of RoPE's options.

    d_head  channels of a head, even
    base    of the frequencies that it starts from
    layout  which channels make a pair

    Raises ValueError for sizes that do not fit.
    """
    return LeRoPE(d_head, base=base, layout=layout)


ENTRY = Entry(
    name="lerope",
    class_name="LeRoPE",
    builder="lerope",
    title="LeRoPE",
    kind="rotated",
    published="2026-07",
    needs=("parameters",),
    formula="R(p)q · R(p')k, ω_i·exp(α_i)",
    also_called=("learned_rope", "learned_frequencies", "learnable_rope"),
    used_by=("Mistral-Large-4",),
)
