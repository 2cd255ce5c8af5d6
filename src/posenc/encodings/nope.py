"""No encoding at all.

    logits = q·k / √d_head

Without a mask the output does not depend on order; with a causal mask, deeper layers can learn the order.
Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional Information";
Kazemnejad et al. 2023, section 3.
"""

from __future__ import annotations

from posenc.encoding import PositionalEncoding


class NoPE(PositionalEncoding):
    """The base class under its own name: no seam is used."""

    def __init__(self) -> None:
        super().__init__()
