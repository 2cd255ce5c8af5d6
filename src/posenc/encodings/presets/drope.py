"""DroPE: the rotation of a trained model is dropped, and a short training afterwards makes up for it.

    train with R(p)q · R(p')k,   then go on with q·k

Gelberg et al. 2025, "Extending the Context of Pretrained LLMs by Dropping Their Positional Embeddings", section 4.
"""

from __future__ import annotations

from posenc.encodings.nope import NoPE
from posenc.support.checked import checked


@checked
def drope() -> NoPE:
    """What takes the place of a trained model's RoPE, in every layer: `NoPE`.

    The weights stay; train them for some per cent of the steps more, at the trained length.
    """
    return NoPE()
