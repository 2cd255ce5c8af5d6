"""Encodings that fused kernels cannot serve, for the backends that use such a kernel."""

from __future__ import annotations

from posenc.encoding import PositionalEncoding, Site


def hidden_from(encoding: PositionalEncoding) -> str | None:
    """Why a kernel that does not expose logits and probabilities can never serve the encoding, or None."""
    if encoding.sites & Site.CONTEXT:
        return "it reads the logits, which the fused kernel does not expose"
    if encoding.sites & Site.VALUE:
        return "it adds to the output by the attention probabilities, which the fused kernel does not expose"
    if encoding.sites & Site.WEIGHTS:
        return "it has something else in the place of the softmax, which is part of the fused kernel"
    return None
