"""The drop-in module: projections, grouped heads, any encoding, a key-value cache.

Legend: b batch, t tokens, s tokens of the memory, d d_model, h query heads, g key heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import torch
from torch import Tensor, nn

from posenc.attention import attend, attend_rotated
from posenc.attention.options import Given
from posenc.combined import check_one_layer
from posenc.encoding import PositionalEncoding, rotated
from posenc.positions import Positions, readable
from posenc.structure import Vectors
from posenc.support.checked import checked, explained
from posenc.support.checks import shown

if TYPE_CHECKING:
    from posenc.support.shapes import Float


AFTER_ROTATION = frozenset({"bias", "finish"})


@dataclass(frozen=True, eq=False)
class KeyValueCache:
    """Rotated keys, values, their positions and what was read of them. `extend` returns a longer cache; this one stays."""

    k: Float[Tensor, "b g s dh"]
    v: Float[Tensor, "b g s dh"]
    at: Positions

    @explained
    def extend(self, k: Float[Tensor, "b g t dh"], v: Float[Tensor, "b g t dh"], at: Positions) -> KeyValueCache:
        """Raises ValueError for keys or values of other rows, heads or channels than the cache has."""
        for name, held, new in (("k", self.k, k), ("v", self.v, v)):
            if new.dtype != held.dtype or new.device != held.device:
                raise TypeError(f"{name}: expected {held.dtype} on {held.device} as in the cache, got {shown(new)}")
            if new.shape[:2] != held.shape[:2] or new.shape[3] != held.shape[3] or new.shape[2] != at.length:
                raise ValueError(
                    f"{name}: expected {list(held.shape)} as the cache has, with the {at.length} tokens of `at`, "
                    f"got {list(new.shape)}"
                )
        at = at.expand(k.shape[0])
        return KeyValueCache(
            torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2), Positions.cat([self.at.expand(k.shape[0]), at])
        )


class Attention(nn.Module):
    """Multi-head attention with any encoding at any seam, `embed` included.

        out = W_o · attend(W_q x̃, W_k x̃, W_v x̃),   x̃ = encoding.embed(x)

    A model that adds its absolute encoding to the residual stream (as the original Transformer does) calls
    `encoding.embed` itself, once, and builds on `attend`; this module then would add it a second time.

    d_model, n_heads, n_kv_heads (default n_heads), d_head (default d_model / n_heads)
    Raises ValueError for widths that do not divide.
    """

    @checked
    def __init__(
        self,
        d_model: int,
        n_heads: int,
        encoding: PositionalEncoding,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        check_one_layer(encoding)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; say d_head")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}")
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_model, self.encoding = d_model, encoding
        self.query = nn.Linear(d_model, n_heads * self.d_head, bias=bias)
        self.key = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.val = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.out = nn.Linear(n_heads * encoding.query_copies * self.d_head, d_model, bias=bias)

    @explained
    def forward(
        self,
        x: Float[Tensor, "b t d"],
        at: Positions,
        memory: Float[Tensor, "b s d"] | None = None,
        at_memory: Positions | None = None,
        *,
        causal: bool | None = None,
        impl: str = "auto",
        **options: Unpack[Given],
    ) -> Float[Tensor, "b t d"]:
        """Self-attention, or cross-attention to `memory` at `at_memory`.

        causal  None: self-attention is causal, and in cross-attention every token sees the whole memory, because the order
                of one sequence says nothing of the other. True compares the orders of both, for memories that go along

        `options` are those of `attend`: mask, scale, window, chunk, softcap, sinks and dropout.
        """
        if (memory is None) != (at_memory is None):
            raise ValueError("memory, at_memory: expected both or neither")
        causal = memory is None if causal is None else causal
        self._check(x)
        x = self.encoding.embed(x, at)
        at = self.encoding.read_hidden(x, at)
        source, at_source = x, at
        if memory is not None and at_memory is not None:
            source = self.encoding.embed(memory, at_memory)
            at_source = self.encoding.read_hidden(source, at_memory)
        q, k, v = self._split(self.query(x)), self._split(self.key(source)), self._split(self.val(source))
        out = attend(q, k, v, self.encoding, at, at_source, causal=causal, impl=impl, **options)
        return self._merge(out)

    @explained
    def decode(
        self,
        x: Float[Tensor, "b t d"],
        at: Positions,
        cache: KeyValueCache | None = None,
        *,
        impl: str = "auto",
        **options: Unpack[Given],
    ) -> tuple[Float[Tensor, "b t d"], KeyValueCache]:
        """Causal self-attention over the cached tokens and these; returns the output and the longer cache.

        Prompt: decode(x, Positions.arange(b, n)); then one token per row: decode(x, Positions.decode(lengths), cache), with
        the number of real tokens of each row as its length, padding not counted.
        `options` are those of `attend`; of a `window` only the keys inside are read, the cache keeps all.

        Raises ValueError for a cache of other rows, and in eager code on the CPU for counted positions that do not follow
        the last one that the cache holds of the row.
        """
        self._check(x)
        if cache is not None and not (isinstance(cache, KeyValueCache) and cache.k.shape[0] == x.shape[0]):
            got = cache.k.shape[0] if isinstance(cache, KeyValueCache) else shown(cache)
            raise ValueError(f"cache: expected the KeyValueCache of {x.shape[0]} rows that decode returned, got {got}")
        x = self.encoding.embed(x, at)
        at = self.encoding.read_hidden(x, at, None if cache is None else cache.at)
        q, k = rotated(self.encoding, self._split(self.query(x)), self._split(self.key(x)), at, at)
        v = self.encoding.rotate(self._split(self.val(x)), at, "value")
        # A bias may read tables of the cached keys; those of embeddings and rotations are used up.
        structure = self.encoding.structure()
        kept = self.encoding.seams & AFTER_ROTATION and not (type(structure) is Vectors and not structure.cached)
        held = at if kept or not at.tables else at.replaced(tables={})
        past, cache = cache, KeyValueCache(k, v, held) if cache is None else cache.extend(k, v, held)
        if past is not None and cache.at.consecutive_in != "row":  # it was not seen that they go on
            _check_follows(at, past.at)
        out = attend_rotated(q, cache.k, cache.v, self.encoding, at, cache.at, impl=impl, **options)
        return self._merge(out), cache

    def _check(self, x: Tensor) -> None:
        """Raises ValueError for a width that the projections do not have."""
        if x.shape[-1] != self.d_model:
            raise ValueError(f"x: expected [b, t, d_model={self.d_model}], got {list(x.shape)}")
        weight = getattr(self.query, "weight", None)
        if type(weight) is nn.Parameter and x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"x: expected {weight.dtype} as the projections have, got {x.dtype}")

    def _split(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (-1, self.d_head))
        return heads.transpose(1, 2)  # [b, t, h·dh] -> [b, h, t, dh]

    def _merge(self, x: Tensor) -> Tensor:
        merged: Tensor = self.out(x.transpose(1, 2).flatten(-2))
        return merged


def _check_follows(at: Positions, held: Positions) -> None:
    """Raises ValueError where positions that are known to count up do not go on where the cache ends, row by row.

    Nothing is checked off the CPU, in a graph, and of positions that are not known to count up.
    """
    if at.consecutive_in != "row" or held.coords.ndim != 2 or not at.coords.numel() or not held.coords.numel():
        return
    if not (readable(at.coords) and readable(held.coords)):
        return
    if held.consecutive_in == "row":
        last = held.coords[:, -1]
    else:  # padding and other documents do not count
        last = held.coords.masked_fill(held.document != at.document[:, :1], -1).amax(dim=1)
    got, expected = torch.broadcast_tensors(at.coords[:, 0], last + 1)
    if not torch.equal(got, expected):
        row = int((got != expected).nonzero()[0])
        raise ValueError(
            f"at: row {row} goes on at position {got[row]}, and the cache ends at position {expected[row] - 1}; "
            f"lengths are the real tokens of each row, without padding: Positions.decode({expected.tolist()}). Positions "
            "that are left out on purpose: Positions(coords, order, document)"
        )
