"""What a decoder is called with, as far as positions go: see posenc.positions_from_transformers.

Legend: b batch, t new tokens, s tokens that the row has so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree

from posenc.model_positions import positions_from_transformers
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.shapes import Int


@dataclass(frozen=True, eq=False)
class Call:
    """What a decoder is called with, as far as positions go. A pytree, so that it passes through checkpoints and graphs.

    batch, length   rows, and new tokens in each
    past            tokens that the cache has seen; a tensor where a static cache counts on the device
    mask            1 for real tokens, 0 for padding, of the whole row; None: all are real
    position_ids    positions of the new tokens; None: counted
    """

    batch: int
    length: int
    past: int | Tensor
    mask: Int[Tensor, "b s"] | None
    position_ids: Int[Tensor, "#b t"] | None
    device: torch.device

    def positions(self, keys: int) -> tuple[Positions, Positions]:
        """Positions of the new tokens, and of the `keys` that a layer hands to attention."""
        return positions_from_transformers(
            self.length,
            keys,
            batch=self.batch,
            past=self.past,
            attention_mask=self.mask,
            position_ids=self.position_ids,
            device=self.device,
        )


def _unflatten(leaves: Any, context: Any) -> Call:
    batch, length, device = context
    past, mask, position_ids = leaves
    return Call(batch, length, past, mask, position_ids, device)


_pytree.register_pytree_node(
    Call,
    lambda call: ([call.past, call.mask, call.position_ids], (call.batch, call.length, call.device)),
    _unflatten,
    serialized_type_name="posenc.transformers.Call",
)
