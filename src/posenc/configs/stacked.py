"""The parts of a layer's encoding, put together."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.combined import Stack
from posenc.encoding import PositionalEncoding
from posenc.encodings.nope import NoPE


def stacked(parts: Sequence[PositionalEncoding]) -> PositionalEncoding:
    """NoPE for no parts, one part itself, a Stack of several."""
    return Stack(*parts) if len(parts) > 1 else parts[0] if parts else NoPE()
