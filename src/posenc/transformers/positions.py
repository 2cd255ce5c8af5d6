"""Where the tokens of one call of a Hugging Face model sit: queries, and the keys that each layer's cache holds.

    cached keys                new tokens
    0  1  2  …        past-1 | past … past+t-1          index of a token in the row, its causal order
             └── a layer with a shorter cache holds the last of them

The position of a token is its number among the real tokens of the row (`attention_mask`), or what `position_ids` says.
Where a mask of tokens is not handed over (generation with a static cache makes its own), cached tokens are counted back
from the position of the first new one: right for padding on the left, which is what generation needs.
Legend: b batch, t new tokens, s tokens that the row has so far, n keys of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree

from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Int


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
        alone = isinstance(self.past, int) and self.past == 0 and keys == self.length
        if self.mask is None and self.position_ids is None and isinstance(self.past, int):
            queries = Positions.arange(self.batch, self.length, self.past, device=self.device)
            if alone:
                return queries, queries
            first = self.past + self.length - keys
            if first >= 0:
                return queries, Positions.arange(self.batch, keys, first, device=self.device)
        index = self.past + torch.arange(self.length, device=self.device)
        queries = self._at(index)
        if alone:
            return queries, queries
        seen = self.past + self.length
        first_key = torch.as_tensor(seen - keys, device=self.device).clamp(min=0)
        return queries, self._at(first_key + torch.arange(keys, device=self.device))

    def _at(self, index: Tensor) -> Positions:
        """The tokens at these indices of every row; an index that the row has not reached is padding."""
        seen = torch.as_tensor(self.past + self.length, device=self.device)
        index = index[None].expand(self.batch, -1)
        coords, real = index, index < seen
        if self.mask is not None:
            known = self.mask.to(torch.bool)
            last = known.shape[1] - 1
            real = real & (index <= last) & known.gather(1, index.clamp(max=last))
            coords = (known.long().cumsum(dim=1) - 1).clamp(min=0).gather(1, index.clamp(max=last))
        if self.position_ids is not None:
            new = self.position_ids.expand(self.batch, -1).long()
            own = (index - self.past).clamp(0, self.length - 1)
            if self.mask is None:  # cached tokens stand without gaps before the new ones
                coords = (index - self.past + new[:, :1]).clamp(min=0)
            coords = torch.where(index >= self.past, new.gather(1, own), coords)
        return Positions(coords, index, real.long() - 1)


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
