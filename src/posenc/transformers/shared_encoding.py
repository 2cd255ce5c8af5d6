"""What one encoding must be to act in every block of a model of timm or diffusers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.combined import PerLayer, flat_parts
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.transformers.decoder import Unsupported

if TYPE_CHECKING:
    from posenc.support.shapes import Float


def axes(encoding: PositionalEncoding) -> int:
    """Coordinates of a token that it reads."""
    return max(part.axes for part in flat_parts([encoding]))


def check_shared(encoding: PositionalEncoding) -> None:
    """Raises Unsupported for one that differs by layer, needs tokens in their order, or makes copies of queries."""
    if isinstance(encoding, PerLayer) or "local" not in encoding.traits or encoding.query_copies != 1:
        name = type(encoding).__name__
        raise Unsupported(f"encoding: expected one for all blocks, which acts on single tokens, got {name}")


def check_fits(encoding: PositionalEncoding, x: Float[Tensor, "1 t m"], q: Float[Tensor, "1 h t d"], at: Positions) -> None:
    """Raises Unsupported for an encoding of other sizes than the model's tokens and heads, by using it once."""
    try:
        with torch.no_grad():
            attend(q, q, q, encoding, encoding.read_hidden(encoding.embed(x, at), at), causal=False)
    except (ValueError, TypeError) as error:
        raise Unsupported(f"encoding: {type(encoding).__name__} does not fit the model: {error}") from error
