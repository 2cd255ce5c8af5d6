"""What a decoder is called with, as far as positions go: see posenc.positions_from_transformers.

Legend: b batch, t new tokens, s tokens that the row has so far.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.utils import _pytree

from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.tensors import readable, working_dtype
from posenc.transformers.model_positions import positions_from_transformers

if TYPE_CHECKING:
    from posenc.support.shapes import Int

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Call:
    """What a decoder is called with, as far as positions go. A pytree, so that it passes through checkpoints and graphs.

    batch, length   rows, and new tokens in each
    past            tokens that the cache has seen; a tensor where a static cache counts on the device
    mask            1 for real tokens, 0 for padding, of the whole row; None: all are real
    position_ids    positions of the new tokens; None: counted
    weights         whether the caller wants the attention weights (`output_attentions`)
    gap             whether they are known not to go on where the cached tokens, counted, end
    computed        positions and tables, which the first layer computes for all. No part of the pytree, whose floating
                    leaves FSDP casts to the dtype of its parameters
    """

    batch: int
    length: int
    past: int | Tensor
    mask: Int[Tensor, "b s"] | None
    position_ids: Int[Tensor, "#b t"] | None
    device: torch.device
    gap: bool = False
    weights: bool = False
    computed: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        tokens: Tensor,
        past: int | Tensor,
        mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        packed: bool = True,
        weights: bool = False,
    ) -> Call:
        """The call for `tokens` [b, t, …]. Masks without padding and positions that only count are left out, where they can
        be read: positions are then known to be consecutive, which fast paths need.

        packed   whether a gap in position_ids begins another document, as it does in transformers where it is handed
                 neither a mask nor a cache
        """
        batch, length = tokens.shape[:2]
        real = mask is None or (readable(mask) and bool(mask.all()))
        if position_ids is not None and real and isinstance(past, int) and readable(position_ids):
            counted = torch.arange(past, past + length, device=position_ids.device)
            position_ids = None if bool((position_ids == counted).all()) else position_ids
        gap = position_ids is not None and _gap(position_ids, past, mask)
        if real and (position_ids is None or packed):
            mask = None
        elif mask is None and isinstance(past, int) and past == 0:
            mask = torch.ones(batch, length, dtype=torch.long, device=tokens.device)
        return cls(batch, length, past, mask, position_ids, tokens.device, gap, weights)

    def to(self, device: torch.device | str, **options: Any) -> Call:
        """The same call with its tensors on another device: accelerate moves the arguments of a layer with this."""
        if torch.device(device) == self.device:
            return self
        children, _ = _flatten(self)
        past, mask, position_ids = (x.to(device, **options) if isinstance(x, Tensor) else x for x in children)
        return Call(self.batch, self.length, past, mask, position_ids, torch.device(device), self.gap, self.weights)

    @property
    def new(self) -> Positions:
        """Positions of the new tokens."""
        return self.positions(self.length)[0]

    def positions(self, keys: int) -> tuple[Positions, Positions]:
        """Positions of the new tokens, and of the `keys` that a layer hands to attention."""
        queries, of_keys = self.once(keys, lambda: self._positions(keys))
        return (queries if keys == self.length else self.new), of_keys

    def across(self) -> CrossCall:
        """The same tokens where they read another sequence."""
        return CrossCall(self.batch, self.length, self.device, self.weights)

    def prepared(self, at: Positions, encoding: PositionalEncoding, dtype: torch.dtype) -> Positions:
        """Some of these positions with the encoding's tables."""
        wanted = working_dtype(dtype)
        prepared = self.once((id(at), id(encoding), wanted), lambda: (at, encoding.prepare(at, wanted)))  # keeps `at` alive
        return prepared[1]

    def _positions(self, keys: int) -> tuple[Positions, Positions]:
        return positions_from_transformers(
            self.length,
            keys,
            batch=self.batch,
            past=self.past,
            attention_mask=self.mask,
            position_ids=self.position_ids,
            device=self.device,
        )

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """What `make` gives, for all layers of the call; `key` names it. Without a graph: see Call.computed."""
        if torch.compiler.is_compiling():  # a length as a key would fix it; the compiler removes what is computed twice
            return make()
        if key not in self.computed:
            self.computed[key] = make()
        return self.computed[key]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class CrossCall:
    """A call of cross-attention: every token sees all keys of another sequence, which the model's mask tells apart."""

    batch: int
    length: int
    device: torch.device
    weights: bool

    def positions(self, keys: int) -> tuple[Positions, Positions]:
        """Of the tokens and of the other sequence, each counted from 0; nothing reads them."""
        queries, of_keys = (Positions.arange(self.batch, n, device=self.device) for n in (self.length, keys))
        return queries, of_keys


def numbers_of_tokens(position_ids: Any, past: int | Tensor) -> Tensor | None:
    """[b, t] of what a decoder is given as position_ids; None where its tokens are to be counted.

    Models with several axes (M-RoPE) hand over [4, b, t], the number in the text first, or [3, b, t]: time, height and
    width, which are equal within text. Where those differ the tokens of the row are counted, with a warning. So are those
    after cached ones, whose images are not known.
    """
    if not isinstance(position_ids, Tensor) or position_ids.ndim not in (2, 3):
        return None
    if position_ids.ndim == 2:
        return position_ids
    if position_ids.shape[0] == 4:
        return position_ids[0]
    if torch.compiler.is_compiling() or not isinstance(past, int) or past:
        return None
    if readable(position_ids) and bool((position_ids == position_ids[:1]).all()):
        return position_ids[0]
    warnings.warn(
        f"position_ids: {position_ids.shape[0]} axes for each token, as images have; an attached encoding reads one, "
        "so the tokens of a row are counted",
        stacklevel=2,
    )
    return None


def _gap(position_ids: Tensor, past: int | Tensor, mask: Tensor | None) -> bool:
    """Whether there are cached tokens and the new ones do not go on where these, counted, end; False where that cannot be
    read. Without a mask cached tokens are counted back from the new ones."""
    if not isinstance(past, int) or not past or not all(readable(x) for x in (position_ids, mask) if x is not None):
        return False
    first = position_ids[:, 0] if mask is None else mask[:, : past + 1].long().sum(dim=1) - 1
    return bool((position_ids[:, 0] != first).any()) or bool((position_ids.diff(dim=1) != 1).any())


def _flatten(call: Call) -> tuple[list[Any], tuple[int, int, torch.device, bool, bool]]:
    return [call.past, call.mask, call.position_ids], (call.batch, call.length, call.device, call.gap, call.weights)


def _unflatten(children: Any, context: Any) -> Call:
    past, mask, position_ids = children
    batch, length, device, gap, weights = context
    return Call(batch, length, past, mask, position_ids, device, gap, weights)


_pytree.register_pytree_node(Call, _flatten, _unflatten, serialized_type_name="posenc.transformers.Call")
