"""Encodings that fused kernels cannot serve, for the backends that use such a kernel."""

from __future__ import annotations

from posenc.encoding import PositionalEncoding
from posenc.structure import addend_of


def hidden_from(encoding: PositionalEncoding) -> str | None:
    """Why a kernel that does not expose logits and probabilities can never serve the encoding, or None."""
    if "finish" in encoding.seams and addend_of(encoding) is None:
        return "its finish reads the logits or the attention probabilities, which the fused kernel does not expose"
    return None
