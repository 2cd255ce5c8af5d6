"""DroPE: the rotation of a trained model is dropped, and a short training afterwards makes up for it.

    train with R(p)q · R(p')k,   then go on with q·k

Gelberg et al. 2025, "Extending the Context of Pretrained LLMs by Dropping Their Positional Embeddings", section 4.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.nope import NoPE
from posenc.support.checked import checked


@checked
def drope() -> NoPE:
    """What takes the place of a trained model's RoPE, in every layer: `NoPE`.

    The weights stay; train them for some per cent of the steps more, at the trained length.
    """
    return NoPE()


ENTRY = Entry(
    name="drope",
    class_name="NoPE",
    builder="drope",
    title="DroPE",
    kind="preset",
    published="2025-12",
    formula="R(p)q · R(p')k, then q·k",
    also_called=("drop_positional_embeddings", "dropped_rope"),
    used_by=("research: SmolLM and Llama 2 by its authors",),
    domains=("text", "audio", "graph"),
)
