"""Cached tokens dropped, and the kept ones moved together, as StreamingLLM keeps the first tokens and the last.

    tokens     0 1 2 3 4 5 … 97 98 99        keep = 0 1 2 3 96 97 98 99
    kept       0 1 2 3 96 97 98 99
    stand at   0 1 2 3  4  5  6  7           a rotated key at p becomes one at its new place: R(new - p) R(p) k

Positions are those within the cache (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", 3.2).
Rows that keep fewer tokens than others begin with padding, so that all go on in one column. Where no token moves, as where
each row keeps its first ones, keys stay as they are, whatever an encoding put into them.
Legend: b batch, g key heads, n cached tokens, m kept tokens, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn

from posenc.attention.cached_tokens import moved, taken_columns, turned_by_position
from posenc.combined import flat_parts
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import integers
from posenc.transformers.decoder import stacks_of
from posenc.transformers.interface import attached_layers
from posenc.transformers.layer import Layer
from posenc.transformers.versions import of_self_attention

SERVED = ("DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer")  # of transformers


def evict(model: nn.Module, cache: Any, keep: Tensor | Sequence[int], attention_mask: Tensor | None = None) -> Any:
    """Keeps some tokens of a cache, drops the others, and returns the same cache. The model goes on at position m.

        evict(model, cache, [*range(4), *range(n - 1000, n)])   four attention sinks and the last thousand tokens
        evict(model, cache, keep, attention_mask)               keep [b, n]: True where a row keeps its token

    model           with an encoding attached in every layer
    cache           what the model returned as past_key_values, dynamic or static, with or without windows; its tensors are
                    replaced, or written where they are static. Those of cross-attention stay
    keep            indices of cached tokens, growing, the same in every row; or a mask [b, n] or [1, n]
    attention_mask  [b, n], what the model was told of the cached tokens: padding is dropped. None: all are real, or padding
                    on the left that `keep` keeps, which stays padding

    Rows then hold m tokens, the most that a row keeps; a row that keeps fewer begins with padding. The attention mask of
    the next call is that of `torch.arange(m) >= m - keep.sum(1, keepdim=True)`, followed by ones for its tokens.
    Kept tokens are always numbered anew, since the model counts cached tokens; no option leaves them at their old places.
    Keys of RoPE, xPos and learned rotations are turned to their new places, and values where they turn too; biases of the
    distance, NoPE and temperatures, which multiply queries only, need nothing.
    In the first layer the result is that of the kept tokens alone. In later layers keys and values still hold what their
    tokens had read of dropped ones.

    Raises ValueError where nothing is attached, for indices that there are not and a mask of another shape, where the
    window of a layer would see kept tokens that it has dropped already, and, where tokens move, for a layer with the
    model's own encoding and an encoding whose keys hold positions otherwise (added to embeddings, states of earlier
    tokens); TypeError for a cache of another kind and for rotations that do not add up. The cache is then as it was.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a model of transformers, got {shown(model)}")
    *_, decoder = stacks_of(model).values()  # an encoder caches nothing
    layers = dict(attached_layers(decoder))
    if not layers:
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    held, rows, cached = _held(cache)
    real = _real(attention_mask, rows, cached)
    stays = _mask(keep, rows, cached) & real
    if not bool(stays.any()):
        raise ValueError("keep: expected at least one token")
    _put(held, layers, _Kept.of(stays, real))
    return cache


def crop(cache: Any, lengths: Tensor | Sequence[int], attention_mask: Tensor | None = None) -> Any:
    """Keeps the first `lengths` tokens of every row, each row by itself, and returns the same cache: accepted drafts.

        crop(cache, [9, 11])    transformers' own cache.crop takes as many from every row

    cache           as for `evict`; of any model, since no token moves
    lengths         [b], how many tokens stay; padding is not counted
    attention_mask  [b, n], what the model was told of the cached tokens; None: all are real

    Rows then hold m tokens, the longest of them, and begin with padding where they are shorter. The attention mask of the
    next call is that of `torch.arange(m) >= m - lengths[:, None]`, followed by ones for its tokens. Without an encoding
    attached, a model needs position_ids too, since it counts padding.

    Raises ValueError for another number of rows, for more tokens than a row has, and where the window of a layer would see
    tokens that it has dropped already; TypeError for a cache of another kind. The cache is then as it was.
    """
    held, rows, cached = _held(cache)
    real = _real(attention_mask, rows, cached).expand(rows, -1)
    wanted, has = integers("lengths", lengths, "[b], one for each row", "cpu"), real.sum(dim=1)
    if wanted.shape != has.shape or bool(((wanted < 0) | (wanted > has)).any()):
        raise ValueError(f"lengths: rows have {has.tolist()} tokens, expected no more of each, got {wanted.tolist()}")
    _put(held, {}, _Kept.of(real & (real.cumsum(dim=1) <= wanted[:, None]), real))
    return cache


class _Kept(NamedTuple):
    """The columns that stay of every row, padding first, and by how much their tokens move. One row may stand for all."""

    column: Tensor  # [b, m]
    by: Tensor  # [b, m]
    stays: Tensor  # [b, m], False for padding
    cached: int

    @classmethod
    def of(cls, stays: Tensor, real: Tensor) -> _Kept:
        """From masks [b, n] of what stays and of what is a token."""
        count = stays.sum(dim=1, keepdim=True)
        cached, most = stays.shape[1], int(count.max())
        column = stays.to(torch.uint8).argsort(dim=1, stable=True)[:, cached - most :]  # what stays comes last, in order
        place = torch.arange(most) - (most - count)
        position = (real.cumsum(dim=1) - 1).expand_as(stays).gather(1, column)
        return cls(column, (place - position).masked_fill(place < 0, 0), place >= 0, cached)


def _held(cache: Any) -> tuple[list[Any], int, int]:
    """The layers of a cache, its rows and its tokens. Raises TypeError for another kind."""
    held = list(getattr(of_self_attention(cache), "layers", None) or ())
    if not held or any(type(layer).__name__ not in SERVED or layer.keys is None for layer in held):
        kinds = sorted({type(layer).__name__ for layer in held or [cache]})
        raise TypeError(f"cache: expected a dynamic or static cache that has read tokens, got {', '.join(kinds)}")
    (rows, cached), *others = {(layer.keys.shape[0], int(layer.get_seq_length())) for layer in held}
    if others:
        raise TypeError(f"cache: expected as many tokens in every layer, got {sorted({cached, *(n for _, n in others)})}")
    return held, rows, cached


def _real(attention_mask: Tensor | None, rows: int, cached: int) -> Tensor:
    """[b, n], or one row for all."""
    if attention_mask is None:
        return torch.ones(1, cached, dtype=torch.bool)
    if not _is_dense(attention_mask) or attention_mask.shape != (rows, cached):
        raise ValueError(
            f"attention_mask: expected [{rows}, {cached}], a column for each cached token, got {shown(attention_mask)}"
        )
    return attention_mask.to("cpu", torch.bool)


def _mask(keep: Tensor | Sequence[int], rows: int, cached: int) -> Tensor:
    """[b, n], or one row for all."""
    if isinstance(keep, Tensor) and keep.dtype == torch.bool:
        if not _is_dense(keep) or keep.shape not in ((rows, cached), (1, cached)):
            raise ValueError(
                f"keep: expected a mask [{rows}, {cached}] or [1, {cached}], a column for each cached token, "
                f"got {shown(keep)}"
            )
        return keep.cpu()
    index = integers("keep", keep, "such as [0, 1, 98, 99]", "cpu")
    if bool((index.diff() <= 0).any()) or (len(index) and (int(index[0]) < 0 or int(index[-1]) >= cached)):
        raise ValueError(f"keep: expected growing indices from 0 to {cached - 1}, got {shown(keep)}")
    return torch.zeros(1, cached, dtype=torch.bool).index_fill(1, index, True)


def _is_dense(x: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor with values to read."""
    return isinstance(x, Tensor) and not x.is_nested and x.layout is torch.strided and not x.is_meta and not x.is_complex()


def _put(held: Sequence[Any], layers: Mapping[int, Layer], kept: _Kept) -> None:
    """Computes keys and values of all layers, then puts them into the cache."""
    computed = [_of_layer(n, layers.get(n), layer, kept) for n, layer in enumerate(held)]
    for layer, (keys, values) in zip(held, computed, strict=True):
        _write(layer, keys, values, kept.column.shape[1])


def _of_layer(n: int, layer: Layer | None, held: Any, kept: _Kept) -> tuple[Tensor, Tensor]:
    """Keys and values [b, g, m, d] of the kept tokens; the last ones where the layer has a window."""
    stored, most = min(kept.cached, held.keys.shape[2]), kept.column.shape[1]
    seen = _seen(held, most)
    last = slice(max(most - seen - hasattr(held, "max_cache_len"), 0), None)  # a static window stores one that none sees
    column = kept.column[:, last] - (kept.cached - stored)
    if bool(((column < 0) & kept.stays[:, last])[:, column.shape[1] - seen :].any()):
        raise ValueError(
            f"keep: the window of layer {n} would see the last {seen} kept tokens, and of all {kept.cached} it holds the "
            f"last {stored}; keep the last {seen} of every row, or read the kept tokens again"
        )
    by, column = kept.by[:, last].to(held.keys.device), column.clamp(min=0).to(held.keys.device)
    keys, values = (taken_columns(x, column) for x in (held.keys, held.values))
    return (keys, values) if not bool(kept.by.any()) else _moved(n, layer, keys, values, by)


def _moved(n: int, layer: Layer | None, keys: Tensor, values: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
    if layer is None:
        raise ValueError(f"model: layer {n} has the model's own encoding; attach one to every layer")
    encoding = layer.encoding
    if layer.keeps_states or "embed" in encoding.seams:
        raise ValueError(
            f"model: keys of {label(encoding)} in layer {n} hold more than a rotation of their position, so that kept "
            "tokens cannot be moved; read them again without the others"
        )
    if not layer.caches_rotated:
        return keys, values  # attention rotates what it is handed
    key = keys.new_zeros(1, layer.keys[0], 1, layer.keys[1])
    turning = any(turned_by_position(part, key, "key") for part in flat_parts([encoding]))
    if turning and (keys.shape[1], keys.shape[3]) != layer.keys:
        raise TypeError(
            f"cache: layer {n} holds keys of {list(keys.shape[1::2])} heads and channels, expected "
            f"{list(layer.keys)}: those of latent attention, and those that {label(encoding)} makes wider, are not "
            "moved"
        )
    return moved(keys, values, by, encoding)


def _seen(held: Any, kept: int) -> int:
    """How many of the kept tokens the next one sees in this layer."""
    if not held.is_sliding:
        return kept
    window = held.max_cache_len if hasattr(held, "max_cache_len") else held.sliding_window
    return min(kept, int(window) - 1)


@torch.no_grad()
def _write(held: Any, keys: Tensor, values: Tensor, length: int) -> None:
    """Replaces the tensors of a dynamic layer; writes those of a static one, whose addresses graphs know."""
    if not hasattr(held, "max_cache_len"):
        held.keys, held.values = keys, values
        if held.is_sliding:
            held.cumulative_length = length
        return
    for tensor, new in ((held.keys, keys), (held.values, values)):
        tensor[:, :, : new.shape[2]] = new
    held.cumulative_length.fill_(length)
    if held.is_sliding:
        held.cumulative_length_int = length
