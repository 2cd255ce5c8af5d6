"""One attention layer with an attached encoding, within one call of its model.

    hidden states ── q, k, v ── the model's rotation, bound to rotated_both: q and k rotated ──► cache ──► attention
    hidden states ── read ──► q, k, v ──► RotatedKeys.update: k and v rotated, then cached ──► attention: q rotated

The first way is taken where the model rotates all channels of queries and keys in one call, and where the encoding reads no
hidden states and rotates no values. It is one call of the kernel, before a norm that follows the model's rotation. The
second way serves all other layers, and is refused where such a norm would come before it.

What an encoding reads of hidden states, and needs of earlier tokens too, is cached as further channels of the keys. It
follows them wherever the cache takes them: beams, cropping, windows, other devices.
Keys are cached rotated wherever they are cached: each is rotated once, in the call that brings it. This is right because a
rotated token depends on itself and its own position alone. Without a cache, where layers share their keys, and where latent
vectors are cached in their place, attention rotates the keys that it is handed.
Legend: b batch, h query heads, g key heads, t new tokens, n keys, d channels of a head, m channels of the model.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc.combined import Stack
from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.content_dependent import ReadsHidden
from posenc.encodings.bases.temperature import TemperedBias
from posenc.positions import Positions
from posenc.structure import Rotation, rotated
from posenc.support.tensors import full_precision
from posenc.transformers.cached_states import packed, unpacked
from posenc.transformers.positions import Call
from posenc.transformers.rotation_forms import Rotate

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class Layer:
    """The encoding of one attention module, held so that the module does not register it a second time.

    keys            heads and channels of the keys that attention is handed; (0, 0) if not known
    caches_rotated  whether its keys may be rotated before they are cached
    keeps_states    whether what was read of earlier tokens is needed too: ReadsHidden needs the queries' alone
    """

    def __init__(
        self, encoding: PositionalEncoding, *, keys: tuple[int, int] = (0, 0), caches_rotated: bool = True
    ) -> None:
        self.encoding, self.keys, self.caches_rotated = encoding, keys, caches_rotated
        parts = [part for part in encoding.modules() if isinstance(part, PositionalEncoding)]
        reading = [part for part in parts if type(part).read_hidden is not PositionalEncoding.read_hidden]
        self.reads = bool(reading)
        self.keeps_states = any(not isinstance(part, (ReadsHidden, Stack, TemperedBias)) for part in reading)
        self.learned_tables = any(part.learned_tables for part in parts)


class LayerCall:
    """The layer within one call: its positions, what was read of hidden states, and whether its keys are rotated."""

    def __init__(self, layer: Layer, call: Call) -> None:
        self.layer, self.call = layer, call
        self.encoding = layer.encoding
        self.queries_are_rotated = self.keys_are_rotated = False
        self.hidden: Tensor | None = None
        self.new_with_tables: Positions | None = None  # of the dtype of queries, keys and values, which is one
        self.new_with_states: Positions | None = None
        self.keys_with_states: Positions | None = None

    def read(self, hidden: Float[Tensor, "b t m"], past: Positions | None = None) -> Positions:
        """Hands the encoding the hidden states that go into the projections; new positions with what it read."""
        self.hidden = hidden
        self.new_with_states = self.encoding.read_hidden(hidden, self._tabled(self.call.new, hidden.dtype), past)
        return self.new_with_states

    def read_after_static(self, held: Float[Tensor, "b g s c"]) -> Positions:
        """The same where columns of `held` may be unwritten: those that `past` does not count. See `hold_states`."""
        new = self.new_with_states
        assert new is not None
        assert self.hidden is not None
        columns = self.call.positions(held.shape[2] + new.length)[1].expand(new.batch).narrow(0, held.shape[2])
        document = columns.document.masked_fill(columns.order >= self.call.past, -1)
        states = unpacked(held, new.states)
        return self.read(self.hidden, Positions(columns.coords, columns.order, document, states=states))

    def hold_states(self, held: Float[Tensor, "b g n c"]) -> None:
        """What was read of all keys that attention is handed, as `packed` made it."""
        assert self.new_with_states is not None
        of_keys = self.call.positions(held.shape[2])[1].expand(self.new_with_states.batch)
        self.keys_with_states = of_keys.replaced(states=unpacked(held, self.new_with_states.states))

    def read_after(self, held: Float[Tensor, "b g s c"] | None) -> Positions:
        """Reads again after earlier tokens, where `held` is what `packed` made of what was read of them."""
        new = self.new_with_states
        assert new is not None
        assert self.hidden is not None
        if held is not None:
            length = held.shape[2] + new.length
            of_keys = self.call.positions(length)[1].expand(new.batch)
            past = of_keys.narrow(0, held.shape[2]).replaced(states=unpacked(held, new.states))
            new = self.read(self.hidden, past)
            joined = {
                owner: tuple(torch.cat(both, dim=1) for both in zip(past.states[owner], read, strict=True))
                for owner, read in new.states.items()
            }
            self.keys_with_states = of_keys.replaced(states=joined)
        return new

    def new(self, dtype: torch.dtype) -> Positions:
        """Positions of the new tokens, with the encoding's tables and what was read."""
        if self.new_with_states is not None:
            return self.new_with_states
        if self.new_with_tables is None:
            self.new_with_tables = self._tabled(self.call.new, dtype)
        return self.new_with_tables

    def rotated(self, q: Float[Tensor, "b h t d"], keys: int) -> tuple[Tensor, Positions, Positions]:
        """The queries, rotated where the keys are, and the positions of queries and keys."""
        at_q, (plain, at_k) = self.new(q.dtype), self.call.positions(keys)
        if self.call.gap and not (self.keys_are_rotated and isinstance(self.encoding.structure(), Rotation)):
            warnings.warn(
                "position_ids: the new tokens do not go on where the cached ones end; cached tokens are counted, so that "
                f"{type(self.encoding).__name__} sees other distances than without a cache",
                stacklevel=2,
            )
        if self.keys_with_states is not None:
            at_k = self.keys_with_states
        elif plain is at_k:
            at_k = at_q
        elif not self.keys_are_rotated:
            at_k = self._tabled(at_k, q.dtype)
        if self.queries_are_rotated or not self.keys_are_rotated:
            return q, at_q, at_k
        with full_precision(q):
            return self.encoding.rotate(q, at_q, "query"), at_q, at_k

    def rotated_both(self, q: Float[Tensor, "b h t d"], k: Float[Tensor, "b g t d"]) -> tuple[Tensor, Tensor]:
        """Queries and keys of the new tokens, rotated where the model would rotate them, before keys are cached."""
        self.queries_are_rotated = self.keys_are_rotated = True
        at = self.new(q.dtype)
        with full_precision(q):
            return rotated(self.encoding, q, k, at, at)

    def _tabled(self, at: Positions, dtype: torch.dtype) -> Positions:
        """With tables that the layers share. Learned ones are computed in each, which then has its own graph backwards."""
        if self.layer.learned_tables and torch.is_grad_enabled():
            return at
        return self.call.prepared(at, self.encoding, dtype)


def in_place_of(function: Rotate) -> Rotate:
    """A family's rotation that, handed a LayerCall for cos, rotates as the layer's encoding does."""

    def rotated(q: Tensor, k: Tensor, cos: Any, *rest: Any, **named: Any) -> Any:
        return cos.rotated_both(q, k) if isinstance(cos, LayerCall) else function(q, k, cos, *rest, **named)

    return rotated


class RotatedKeys:
    """A cache of transformers whose `update` rotates new keys and values first; in all else it is that cache.

    Errors call it what the layer's argument is called.
    """

    def __init__(self, cache: Any, entered: LayerCall, name: str) -> None:
        self._cache, self._entered, self._name = cache, entered, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def update(self, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Any:
        """[b, g, t, d] of new tokens to [b, g, n, d] of all that attention reads, keys and values alike.

        Latent attention caches what keys are computed from, in other shapes: that is left as it is.
        """
        layer, read = self._entered.layer, self._entered.new_with_states
        keeps_states = layer.keeps_states and read is not None and bool(read.states)
        if (key.shape[1], key.shape[3]) != layer.keys:
            if keeps_states:
                raise TypeError(f"{self._name}: latent attention caches no keys, beside which states could be kept")
            return self._cache.update(key, value, *args, **named)
        if keeps_states:
            return self._update_with_states(key, value, *args, **named)
        key, value = self._rotated(key, value, self._entered.new(key.dtype))
        return self._cache.update(key, value, *args, **named)

    def _rotated(self, key: Tensor, value: Tensor, at: Positions) -> tuple[Tensor, Tensor]:
        self._entered.keys_are_rotated = True
        encoding = self._entered.encoding
        with full_precision(key):
            return encoding.rotate(key, at, "key"), encoding.rotate(value, at, "value")

    def _update_with_states(self, key: Tensor, value: Tensor, layer_idx: int, *args: Any, **named: Any) -> Any:
        """The same where the encoding needs what it read of earlier tokens."""
        layers = self._cache.layers
        kept = layers[layer_idx] if layer_idx < len(layers) else None
        held: Tensor | None = getattr(kept, "keys", None)
        static = hasattr(kept, "max_cache_len")
        at = self._entered.new_with_states
        assert at is not None
        channels = packed(at.states, key).shape[3]
        earlier = None if held is None or held.ndim != 4 or not held.shape[2] else held[..., -channels:]
        if earlier is not None and static:
            at = self._entered.read_after_static(earlier)
        else:
            at = self._entered.read_after(earlier)
        key, value = self._rotated(key, value, at)
        keys, values = self._cache.update(
            torch.cat([key, packed(at.states, key)], dim=-1), value, layer_idx, *args, **named
        )
        if static:
            self._entered.hold_states(keys[..., -channels:])
        return keys[..., : key.shape[3]], values
