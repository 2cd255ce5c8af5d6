"""The drop-in module: projections, grouped heads, any encoding, a key-value cache.

Legend: b batch, t tokens, s tokens of the memory, d d_model, h query heads, g key heads.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import torch
from torch import Tensor, nn

from posenc.attention import attend, attend_rotated
from posenc.attention.cache import KeyValueCache as KeyValueCache
from posenc.attention.cache import MemoryCache, RingCache, StaticCache, check_written_by
from posenc.attention.call import Call
from posenc.attention.options import AttendOptions, Options
from posenc.attention.plan import backend_of
from posenc.combined import PerLayer, Stack, check_layout, check_one_layer, rotary_layouts
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import Vectors, rotated
from posenc.support.checked import checked, checked_on_failure
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import readable

if TYPE_CHECKING:
    from posenc.support.shapes import Float


AFTER_ROTATION = frozenset({"bias", "finish"})


_ADDING: weakref.WeakKeyDictionary[PositionalEncoding, weakref.ref[Attention]] = weakref.WeakKeyDictionary()
"""Of encodings that add to embeddings: the block that was made with it first."""


class Attention(nn.Module):
    """Multi-head attention with any encoding at any seam, `embed` included.

        out = W_o · attend(W_q x̃, W_k x̃, W_v x̃),   x̃ = encoding.embed(x)

    Every block adds what an absolute encoding adds. In a stack of blocks, `posenc.replace_encoding(model, encoding)` gives
    it to the first one only. A model that calls `encoding.embed` itself has blocks of NoPE. A second block that is made
    with the same adding encoding warns.

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
        if "embed" in encoding.seams:
            _warn_of_second(encoding, self)
        self.d_head = d_model // n_heads if d_head is None else d_head
        _check_sizes("this Attention", encoding, {"d_model": d_model, "d_head": self.d_head, "n_heads": n_heads})
        self.d_model, self.encoding = d_model, encoding
        self.query = nn.Linear(d_model, n_heads * self.d_head, bias=bias)
        self.key = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.value = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.out = nn.Linear(n_heads * encoding.query_copies * self.d_head, d_model, bias=bias)

    @checked_on_failure
    def forward(
        self,
        x: Float[Tensor, "b t d"],
        at: Positions,
        memory: Float[Tensor, "b s d"] | None = None,
        at_memory: Positions | None = None,
        *,
        causal: bool | None = None,
        impl: str = "auto",
        **options: Unpack[AttendOptions],
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
        x, at = self._read(x, at)
        source, at_source = x, at
        if memory is not None and at_memory is not None:
            source, at_source = self._read(memory, at_memory)
        q, k, v = self._split(self.query(x)), self._split(self.key(source)), self._split(self.value(source))
        out = attend(q, k, v, self.encoding, at, at_source, causal=causal, impl=impl, **options)
        return self._merge(out)

    @checked_on_failure
    def decode(
        self,
        x: Float[Tensor, "b t d"],
        at: Positions,
        cache: KeyValueCache | None = None,
        memory: Float[Tensor, "b s d"] | None = None,
        at_memory: Positions | None = None,
        *,
        causal: bool | None = None,
        impl: str = "auto",
        **options: Unpack[AttendOptions],
    ) -> tuple[Float[Tensor, "b t d"], KeyValueCache]:
        """Causal self-attention over the cached tokens and these; returns the output and the longer cache.

        With a `memory` it is cross-attention: decode(x, at, None, memory, at_memory), then decode(x, at, cache), whose
        cache holds the memory's keys and values, projected once. `causal` is that of `forward`, in every call the same.

        Prompt: decode(x, Positions.arange(b, n)); then one token per row: decode(x, Positions.decode(lengths), cache), with
        the number of real tokens of each row as its length, padding not counted.
        `options` are those of `attend`; of a `window` only the keys inside are read, the cache keeps all.

        Raises ValueError for a cache of other rows, for a memory beside a cache, for an encoding that is not `local`, and
        in eager code on the CPU for counted positions that do not follow the last one that the cache holds of the row, and
        for a causal order that starts again.
        """
        self._check(x)
        if not (causal is None or isinstance(causal, bool)):
            raise TypeError(f"causal: expected True, False or None, got {shown(causal)}")
        if cache is not None and not (isinstance(cache, KeyValueCache) and cache.k.shape[0] == x.shape[0]):
            got = cache.k.shape[0] if isinstance(cache, KeyValueCache) else shown(cache)
            raise ValueError(f"cache: expected the KeyValueCache of {x.shape[0]} rows that decode returned, got {got}")
        if cache is not None and cache.encoding is not self.encoding:
            check_written_by(cache, self.encoding)
        if (memory is None) != (at_memory is None):
            raise ValueError("memory, at_memory: expected both or neither")
        if "local" not in self.encoding.traits:
            raise ValueError(
                f"encoding: {type(self.encoding).__name__} reads the neighbours of a token, which a cache does not hold; "
                "decoding gives other numbers than forward: call forward with all tokens"
            )
        if memory is not None and at_memory is not None:
            if cache is not None:
                raise ValueError(
                    "memory: expected none beside a cache, which holds the keys of its own; leave one of them out"
                )
            cache = self._remembered(memory, at_memory)
        if isinstance(cache, MemoryCache):
            return self._across(x, at, cache, causal is True, impl, options)
        if causal is False:
            raise ValueError("causal: decoding without a memory is causal; expected None or True, got False")
        if isinstance(cache, RingCache):
            if options.get("mask") is not None:
                raise ValueError("mask: a ring has no columns that stay; leave the mask out, or decode with a plain cache")
            if x.shape[1] > 1:
                return self._one_by_one(x, at, cache, impl, options)
        x, at = self._read(x, at, None if cache is None else cache.at)
        q, k = rotated(self.encoding, self._split(self.query(x)), self._split(self.key(x)), at, at)
        v = self.encoding.rotate(self._split(self.value(x)), at, "value")
        held, past = self._held(at), cache
        if isinstance(cache, StaticCache):  # which `extend` writes to: what is refused has changed nothing
            _check_goes_on(at, cache.at)
            if options or impl != "auto":
                given = Options(**options)
                given.check(q, cache.k)
                backend_of(Call.of(q, cache.k, cache.v, self.encoding, at, cache.at, options=given), impl)
        cache = KeyValueCache(k, v, held, self.encoding) if cache is None else cache.extend(k, v, held)
        if past is not None and cache is not past and cache.at.consecutive_in != "row":  # it was not seen that they go on
            _check_goes_on(at, past.at)
        out = attend_rotated(q, *cache.read(), self.encoding, at, cache.at, impl=impl, **options)
        return self._merge(out), cache

    def _read(self, x: Tensor, at: Positions, past: Positions | None = None) -> tuple[Tensor, Positions]:
        """A sequence as its projections read it, and its positions with what the encoding took from it, after `past`."""
        encoding = self.encoding
        if "embed" in encoding.seams:
            x = encoding.embed(x, at)
        reads = type(encoding).read_hidden is not PositionalEncoding.read_hidden
        return x, encoding.read_hidden(x, at, past) if reads else at

    def _remembered(self, memory: Tensor, at: Positions) -> MemoryCache:
        source, at = self._read(memory, at)
        k = self.encoding.rotate(self._split(self.key(source)), at, "key")
        v = self.encoding.rotate(self._split(self.value(source)), at, "value")
        return MemoryCache(k, v, self._held(at), self.encoding)

    def _one_by_one(
        self, x: Tensor, at: Positions, cache: KeyValueCache, impl: str, options: AttendOptions
    ) -> tuple[Tensor, KeyValueCache]:
        """Tokens decoded one after the other, each over what the cache holds then."""
        outputs = []
        for n in range(x.shape[1]):
            out, cache = self.decode(x[:, n : n + 1], at.narrow(n, n + 1), cache, impl=impl, **options)
            outputs.append(out)
        return torch.cat(outputs, dim=1), cache

    def _across(
        self, x: Tensor, at: Positions, cache: MemoryCache, causal: bool, impl: str, options: AttendOptions
    ) -> tuple[Tensor, MemoryCache]:
        """Cross-attention over a memory that was projected before."""
        x, read = self._read(x, at, cache.seen)
        if read is not at:
            read = read.expand(x.shape[0])
            cache = replace(cache, seen=read if cache.seen is None else Positions.cat([cache.seen, read]))
        q = self.encoding.rotate(self._split(self.query(x)), read, "query")
        out = attend_rotated(q, *cache.read(), self.encoding, read, cache.at, causal=causal, impl=impl, **options)
        return self._merge(out), cache

    def _held(self, at: Positions) -> Positions:
        """What a cache keeps of positions: a bias may read tables of keys; those of other seams are used up."""
        structure = self.encoding.structure()
        kept = self.encoding.seams & AFTER_ROTATION and not (type(structure) is Vectors and not structure.cached)
        return at if kept or not at.tables else at.replaced(tables={})

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


@checked
def replace_encoding(model: nn.Module, encoding: PositionalEncoding) -> nn.Module:
    """Gives every `Attention` of a model its layer of another encoding, in their order in the model; returns the model.

        replace_encoding(model, posenc.create("alibi", n_heads=8))
        replace_encoding(model, posenc.create("yarn", d_head=64, layout="interleaved"))      # reads further
        replace_encoding(model.decoder, posenc.create("gemma3", d_head=64, n_layers=12))

    The n-th block has encoding.at_layer(n): one encoding for all, or those of a PerLayer. What is added to embeddings is
    added to what the first block projects, not to a residual around it. Projections stay as they are. Caches that were
    made before do not fit any more.
    Blocks of cross-attention are blocks too: give the part of the model whose blocks are meant.

    Raises ValueError, and leaves the model as it was: for a rotation that pairs other channels than the one before, for
    which the projections were trained; for a model without blocks or that adds an encoding itself, outside of its blocks,
    where this one would be added too; for a PerLayer of another number of layers or that adds in a later layer only; for
    heads or widths that a block does not have.
    """
    blocks = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    if not blocks:
        raise ValueError(f"model: expected posenc.Attention blocks, found none in {type(model).__name__}")
    if isinstance(encoding, PerLayer) and len(encoding) != len(blocks):
        raise ValueError(f"encoding: expected {len(blocks)} layers as the model has blocks, got {len(encoding)}")
    layers = [encoding.at_layer(n) for n in range(len(blocks))]
    if "embed" in encoding.at_layer(0).seams:
        inside = {id(part) for block in blocks.values() for part in block.modules()}
        for name, module in model.named_modules():
            if id(module) not in inside and isinstance(module, PositionalEncoding) and "embed" in module.seams:
                raise ValueError(
                    f"encoding: {label(encoding)} adds to the embeddings, and the model adds {name} ({label(module)}) "
                    "already; leave one of them out"
                )
    for (name, block), layer in zip(blocks.items(), layers, strict=True):
        _check_fits(name, block, layer)
        check_layout(layer, rotary_layouts(block.encoding), name)
    for block, layer in zip(blocks.values(), layers, strict=True):
        block.encoding = layer.to(block.query.weight.device).train(block.training)
    return model


def _warn_of_second(encoding: PositionalEncoding, block: Attention) -> None:
    """Warns where another block that is still there was made with an adding encoding."""
    first = _ADDING.get(encoding)
    if first is None or first() is None:
        _ADDING[encoding] = weakref.ref(block)
        return
    warnings.warn(
        f"encoding: {label(encoding)} is added by every block that has it, and another block has it already. In a stack it "
        "is added once: make the blocks with NoPE and call posenc.replace_encoding(model, encoding)",
        stacklevel=4,
    )


def _check_fits(name: str, block: Attention, encoding: PositionalEncoding) -> None:
    """Raises ValueError for an encoding, or a part of a stack, of other sizes than a block."""
    check_one_layer(encoding)
    sizes = {"d_model": block.d_model, "d_head": block.d_head, "n_heads": block.query.out_features // block.d_head}
    copies = block.out.in_features // block.query.out_features
    if encoding.query_copies != copies:
        raise ValueError(
            f"encoding: {label(encoding)} makes {encoding.query_copies} outputs of each head, and the projection of "
            f"{name} is for {copies}; build the model with it"
        )
    _check_sizes(name, encoding, sizes)


def _check_sizes(name: str, encoding: PositionalEncoding, sizes: Mapping[str, int]) -> None:
    """Raises ValueError for an encoding, or a part of a stack, that was made for other sizes than those of attention."""
    for part in encoding if isinstance(encoding, Stack) else (encoding,):
        for size, got in sizes.items():
            built = part.configuration.get(size, got)
            if built != got and (size != "n_heads" or built != got * encoding.query_copies):
                wrong = f"encoding: {label(part)} is for {size}={built}, and {name} has {size}={got}"
                raise ValueError(f"{wrong}; create it with {size}={got}")


def _check_goes_on(at: Positions, held: Positions) -> None:
    (_check_counted if at.consecutive_in == "row" else _check_ordered)(at, held)


def _check_ordered(at: Positions, held: Positions) -> None:
    """Raises ValueError where the causal order of tokens starts again, so that they would not see what the cache holds.

    Nothing is checked off the CPU, and in a graph. The order of counted positions is their position.
    """
    if not (at.order.numel() and held.order.numel() and readable(at.order) and readable(held.order)):
        return
    document, latest = at.document.amax(dim=1, keepdim=True), torch.iinfo(torch.int64).max
    padding, other = at.document < 0, (held.document != document) | (document < 0)
    begins = at.order.masked_fill(padding, latest).amin(dim=1)
    first, last = held.order.masked_fill(other, latest).amin(dim=1), held.order.masked_fill(other, -1).amax(dim=1)
    if bool((restarts := (begins <= first) & (first < last)).any()):
        row = int(restarts.nonzero()[0])
        raise ValueError(
            f"at: the causal order of row {row} starts again at {begins.expand_as(first)[row]}, and the cache holds "
            f"{first[row]} to {last[row]}, which these tokens would not see; give Positions.decode(lengths), or "
            f"Positions.at(coords, seen={held.length})"
        )


def _check_counted(at: Positions, held: Positions) -> None:
    """Raises ValueError where positions that are known to count up do not go on where the cache ends, row by row.

    Nothing is checked off the CPU, and in a graph.
    """
    if held.coords.ndim != 2 or not at.coords.numel() or not held.coords.numel():
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
