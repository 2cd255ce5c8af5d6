"""Where queries and keys of one call of a Hugging Face model sit.

Legend: b batch, t new tokens, s tokens that the row has so far, n keys of a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import INTEGERS

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Int, Num


@checked
def positions_from_transformers(
    length: int,
    keys: int | None = None,
    *,
    batch: int = 1,
    past: int | Int[Tensor, ""] = 0,
    attention_mask: Num[Tensor, "b s"] | Bool[Tensor, "b s"] | None = None,
    position_ids: Int[Tensor, "#b t"] | None = None,
    device: torch.device | str | None = None,
) -> tuple[Positions, Positions]:
    """Queries and keys of one call of a Hugging Face model, from what the model is given.

        cached keys                new tokens
        0  1  2  …        past-1 | past … past+length-1          index in the row, which is the causal order
                 └── a layer with a shorter cache holds the last `keys` of them

    length          new tokens of every row
    keys            keys that the layer hands to attention; as many as there are so far where it is left out. A static
                    cache hands over more: those that are not yet written are padding
    past            tokens that the cache has seen: `cache.get_seq_length()` or `cache_position[0]`
    attention_mask  1 for real tokens, 0 for padding, of the whole row: a token's position is its number among the real
                    ones
    position_ids    positions of the new tokens, in place of counting. In a row without past, a position that is not one
                    more than the last begins another document (packed rows). With a past and no mask, cached tokens are
                    counted back from the first new one, which is right for padding on the left

    The queries are the keys, one object, where there is no past. Raises ValueError for shapes that do not fit.
    """
    _check(length, keys, batch, past, attention_mask, position_ids)
    counted = isinstance(past, int)
    if keys is None:
        keys = int(past) + length
    all_new = counted and past == 0 and keys == length
    if attention_mask is None and position_ids is None and counted:
        queries = Positions.arange(batch, length, past, device=device)
        first = past + length - keys
        if all_new or first < 0:
            return (queries, queries) if all_new else (queries, _at(torch.arange(keys, device=device), batch, length, past))
        return queries, Positions.arange(batch, keys, first, device=device)
    where = next((tensor.device for tensor in (attention_mask, position_ids, past) if isinstance(tensor, Tensor)), device)
    index = past + torch.arange(length, device=where)
    queries = _at(index, batch, length, past, attention_mask, position_ids)
    if all_new:
        return queries, queries
    first_key = past + length - keys
    first_key = first_key.clamp(min=0) if isinstance(first_key, Tensor) else torch.sym_max(first_key, 0)
    of_keys = first_key + torch.arange(keys, device=where)
    return queries, _at(of_keys, batch, length, past, attention_mask, position_ids)


def _at(
    index: Tensor,
    batch: int,
    length: int,
    past: int | Tensor,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
) -> Positions:
    """The tokens at these indices of every row; an index that the row has not reached is padding."""
    index = index[None].expand(batch, -1)
    coords, real = index, index < past + length
    document = torch.zeros_like(index)
    if mask is not None:
        known = mask.to(torch.bool)
        last = known.shape[1] - 1
        inside = index.clamp(max=last)
        real = real & (index <= last) & known.gather(1, inside)
        coords = (known.long().cumsum(dim=1) - 1).clamp(min=0).gather(1, inside)
    if position_ids is not None:
        new = position_ids.expand(batch, -1).long()
        new_index = (index - past).clamp(0, length - 1)
        if mask is None:  # cached tokens stand without gaps before the new ones
            coords = (index - past + new[:, :1]).clamp(min=0)
            if isinstance(past, int) and past == 0:
                document = (new.diff(dim=1, prepend=new[:, :1] - 1) != 1).long().cumsum(dim=1).gather(1, new_index)
        coords = torch.where(index >= past, new.gather(1, new_index), coords)
    return Positions(coords, index, torch.where(real, document, -1))


def _check(
    length: int,
    keys: int | None,
    batch: int,
    past: int | Tensor,
    attention_mask: Tensor | None,
    position_ids: Tensor | None,
) -> None:
    if keys is None:
        if isinstance(past, Tensor):
            raise ValueError("keys: expected a number beside a past that is a tensor, got None")
    else:
        checks.whole(keys=keys)
    if isinstance(past, Tensor):
        if past.numel() != 1 or past.dtype not in INTEGERS:
            raise ValueError(f"past: expected one whole number, got {checks.shown(past)}")
    else:
        checks.whole(0, past=past)
    if attention_mask is not None and attention_mask.shape[0] != batch:
        raise ValueError(f"attention_mask: expected {batch} rows, got {list(attention_mask.shape)}")
    if position_ids is not None and (position_ids.shape[0] not in (1, batch) or position_ids.shape[1] != length):
        raise ValueError(f"position_ids: expected [{batch} or 1, {length}], got {list(position_ids.shape)}")
