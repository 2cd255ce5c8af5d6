"""One attention layer with an attached encoding, within one call of its model.

    hidden states ── read ──► q, k, v ──► RotatedKeys.update: k and v rotated, then cached ──► attention: q rotated

Keys are cached rotated wherever they are cached: each is rotated once, in the call that brings it. This is right because a
rotated token depends on itself and its own position alone. Without a cache, where layers share their keys, and where latent
vectors are cached in their place, attention rotates the keys that it is handed.
Legend: b batch, h query heads, g key heads, t new tokens, n keys, d channels of a head, m channels of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, full_precision
from posenc.positions import Positions
from posenc.transformers.positions import Call

if TYPE_CHECKING:
    from posenc.shapes import Float


class Layer:
    """The encoding of one attention module, held so that the module does not register it a second time.

    keys            heads and channels of the keys that attention is handed; (0, 0) if not known
    caches_rotated  whether its keys may be rotated before they are cached
    """

    def __init__(
        self, encoding: PositionalEncoding, *, keys: tuple[int, int] = (0, 0), caches_rotated: bool = True
    ) -> None:
        self.encoding, self.keys, self.caches_rotated = encoding, keys, caches_rotated
        parts = [part for part in encoding.modules() if isinstance(part, PositionalEncoding)]
        self.reads = any(type(part).read is not PositionalEncoding.read for part in parts)
        self.learned_tables = any(part.learned_tables for part in parts)


class LayerCall:
    """The layer within one call: its positions, what was read of hidden states, and whether its keys are rotated."""

    def __init__(self, layer: Layer, call: Call) -> None:
        self.layer, self.call = layer, call
        self.encoding = layer.encoding
        self.keys_are_rotated = False
        self.new_with_states: Positions | None = None

    def read(self, hidden: Float[Tensor, "b t m"]) -> None:
        """Hands the encoding the hidden states that go into the projections."""
        self.new_with_states = self.encoding.read(hidden, self._tabled(self.call.new, hidden.dtype))

    def new(self, dtype: torch.dtype) -> Positions:
        """Positions of the new tokens, with the encoding's tables and what was read."""
        return self._tabled(self.call.new, dtype) if self.new_with_states is None else self.new_with_states

    def rotated(self, q: Float[Tensor, "b h t d"], keys: int) -> tuple[Tensor, Positions, Positions]:
        """The queries, rotated where the keys are, and the positions of queries and keys."""
        at_q, (plain, at_k) = self.new(q.dtype), self.call.positions(keys)
        if plain is at_k:
            at_k = at_q
        elif not self.keys_are_rotated:
            at_k = self._tabled(at_k, q.dtype)
        if not self.keys_are_rotated:
            return q, at_q, at_k
        with full_precision(q):
            return self.encoding.rotate(q, at_q, "query"), at_q, at_k

    def _tabled(self, at: Positions, dtype: torch.dtype) -> Positions:
        """With tables that the layers share. Learned ones are computed in each, which then has its own graph backwards."""
        if self.layer.learned_tables and torch.is_grad_enabled():
            return at
        return self.call.prepared(at, self.encoding, dtype)


class RotatedKeys:
    """A cache of transformers whose `update` rotates new keys and values first; in all else it is that cache."""

    def __init__(self, cache: Any, entered: LayerCall) -> None:
        self._cache, self._entered = cache, entered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def update(self, key: Tensor, value: Tensor, *given: Any, **named: Any) -> Any:
        """[b, g, t, d] of new tokens to [b, g, n, d] of all that attention reads, keys and values alike.

        Latent attention caches what keys are computed from, in other shapes: that is left as it is.
        """
        if (key.shape[1], key.shape[3]) != self._entered.layer.keys:
            return self._cache.update(key, value, *given, **named)
        at, encoding = self._entered.new(key.dtype), self._entered.encoding
        with full_precision(key):
            key, value = encoding.rotate(key, at, "key"), encoding.rotate(value, at, "value")
        self._entered.keys_are_rotated = True
        return self._cache.update(key, value, *given, **named)
