"""Cached tokens dropped, and the kept ones moved together, as StreamingLLM keeps the first tokens and the last.

    tokens     0 1 2 3 4 5 … 97 98 99        keep = 0 1 2 3 96 97 98 99
    kept       0 1 2 3 96 97 98 99
    stand at   0 1 2 3  4  5  6  7           a rotated key at p becomes one at its new place: R(new - p) R(p) k

Positions are those within the cache (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", 3.2).
Legend: b batch, g key heads, n cached tokens, m kept tokens, d channels of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from posenc.attention.rotated_keys import moved, turned_by_position
from posenc.combined import flat_parts
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.support.tensors import integers
from posenc.transformers.decoder import stacks_of
from posenc.transformers.interface import EnterLayer
from posenc.transformers.layer import Layer
from posenc.transformers.versions import of_self_attention


def evict(model: nn.Module, cache: Any, keep: Tensor | Sequence[int]) -> Any:
    """Keeps some tokens of a dynamic cache, drops the others, and returns the same cache. The model goes on at position m.

        evict(model, cache, [*range(4), *range(n - 1000, n)])   four attention sinks and the last thousand tokens

    model   with an encoding attached in every layer
    cache   what the model returned as past_key_values; its tensors are replaced, those of cross-attention stay
    keep    indices of cached tokens, growing, the same in every row. An attention mask given later has m + new columns.
            Keep the padding of padded rows

    Kept tokens are always numbered anew, since the model counts cached tokens; no option leaves them at their old places.
    Keys of RoPE, xPos and learned rotations are turned to their new places, and values where they turn too; biases of the
    distance, NoPE and temperatures, which multiply queries only, need nothing.
    In the first layer the result is that of the kept tokens alone. In later layers keys and values still hold what their
    tokens had read of dropped ones.

    Raises ValueError where nothing is attached, for a layer with the model's own encoding, an encoding whose keys hold
    positions otherwise (added to embeddings, states of earlier tokens), and indices that there are not; TypeError for
    another cache and for rotations that do not add up. The cache is then as it was.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: expected a model of transformers, got {shown(model)}")
    layers = dict(_attached(model))
    if not layers:
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    held = getattr(of_self_attention(cache), "layers", None)
    if not held or any(type(layer).__name__ != "DynamicLayer" or layer.keys is None for layer in held):
        kinds = sorted({type(layer).__name__ for layer in held or [cache]})
        raise TypeError(f"cache: expected a dynamic cache that has read tokens, without windows, got {', '.join(kinds)}")
    index = _indices(keep, held[0].keys.shape[2])
    kept = [_of_layer(n, layers.get(n), layer, index.to(layer.keys.device)) for n, layer in enumerate(held)]
    for layer, (keys, values) in zip(held, kept, strict=True):
        layer.keys, layer.values = keys, values
    return cache


def _attached(model: nn.Module) -> Iterator[tuple[int, Layer]]:
    """The index of every attention module with an encoding, and what it holds."""
    *_, decoder = stacks_of(model).values()  # an encoder caches nothing
    for module in decoder.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, EnterLayer):
                yield module.layer_idx, hook.layer  # type: ignore[misc]


def _indices(keep: Tensor | Sequence[int], cached: int) -> Tensor:
    """[m]"""
    index = integers("keep", keep, "such as [0, 1, 98, 99]", "cpu")
    if not len(index):
        raise ValueError("keep: expected at least one token")
    if bool((index.diff() <= 0).any()) or int(index[0]) < 0 or int(index[-1]) >= cached:
        raise ValueError(f"keep: expected growing indices from 0 to {cached - 1}, got {shown(keep)}")
    return index


def _of_layer(n: int, layer: Layer | None, held: Any, index: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values [b, g, m, d] of the kept tokens."""
    if layer is None:
        raise ValueError(f"model: layer {n} has the model's own encoding; attach one to every layer")
    encoding, keys, values = layer.encoding, held.keys[:, :, index], held.values[:, :, index]
    if layer.keeps_states or "embed" in encoding.seams:
        raise ValueError(
            f"model: keys of {label(encoding)} in layer {n} hold more than a rotation of their position, so that kept "
            "tokens cannot be moved; read them again without the others"
        )
    if not layer.caches_rotated:
        return keys, values  # attention rotates what it is handed
    by = (torch.arange(len(index), device=index.device) - index)[None]
    key = keys.new_zeros(1, layer.keys[0], 1, layer.keys[1])
    turning = any(turned_by_position(part, key, "key") for part in flat_parts([encoding]))
    if turning and (keys.shape[1], keys.shape[3]) != layer.keys:
        raise TypeError(
            f"cache: layer {n} holds keys of {list(keys.shape[1::2])} heads and channels, expected "
            f"{list(layer.keys)}: those of latent attention, and those that {label(encoding)} makes wider, are not "
            "moved"
        )
    return moved(keys, values, by, encoding)
