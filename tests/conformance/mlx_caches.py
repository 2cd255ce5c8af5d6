"""The caches of mlx-lm under `check_cache`: adapters of three functions. They need mlx and mlx-lm, and nothing of a model.

`posenc check tests/conformance/mlx_caches.py:Growing` tries one. What is read is what mlx-lm hands to attention, with the
columns that its own mask hides left out where the kind has one.
Legend: b batch, g key heads, s stored columns, t new tokens, d channels of a head.
"""

from __future__ import annotations

import copy

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.models import cache as mlx_cache

WINDOW = 6


def to_mlx(x):
    return mx.array(x.float().numpy()).astype({torch.bfloat16: mx.bfloat16}.get(x.dtype, mx.float32))


def to_torch(x):
    dtype = {mx.bfloat16: torch.bfloat16}.get(x.dtype, torch.float32)
    return torch.from_numpy(np.array(x.astype(mx.float32))).to(dtype)


class Adapter:
    """One layer's cache of mlx-lm, copied at every step, and the number of tokens that each row holds."""

    def make(self, batch):
        raise NotImplementedError

    def write(self, held, k, v, positions):
        cache, _, _, lengths = (self.make(len(k)), None, None, [0] * len(k)) if held is None else held
        cache = copy.deepcopy(cache)
        if [int(at) for at in positions[:, 0]] != lengths:
            raise NotImplementedError("rows go on at one offset")
        keys, values = cache.update_and_fetch(to_mlx(k), to_mlx(v))
        return cache, keys, values, [n + k.shape[2] for n in lengths]

    def read(self, held):
        _, keys, values, _ = held
        return to_torch(keys), to_torch(values)

    def crop(self, held, lengths):
        cache, _, _, before = held
        if len(set(lengths)) > 1:
            raise NotImplementedError("trim takes one number for all rows")
        cache = copy.deepcopy(cache)
        if mlx_cache.can_trim_prompt_cache([cache]):
            mlx_cache.trim_prompt_cache([cache], before[0] - lengths[0])
        else:
            raise NotImplementedError("is_trimmable is False")
        return (cache, *cache.keys_and_values(), list(lengths))


class Growing(Adapter):
    def make(self, batch):
        return mlx_cache.KVCache()


class Concatenating(Adapter):
    def make(self, batch):
        return mlx_cache.ConcatenateKVCache()


class Rotating(Adapter):
    """Slots are written over, and are read in the order that the cache itself tells."""

    window = WINDOW

    def make(self, batch):
        return mlx_cache.RotatingKVCache(max_size=WINDOW)

    def read(self, held):
        cache, keys, values, _ = held
        return to_torch(cache._temporal_order(keys)), to_torch(cache._temporal_order(values))


class Batch(Adapter):
    def make(self, batch):
        return mlx_cache.BatchKVCache([0] * batch)


class BatchRotating(Adapter):
    window = WINDOW

    def make(self, batch):
        return mlx_cache.BatchRotatingKVCache(WINDOW, [0] * batch)

    def read(self, held):
        cache = copy.deepcopy(held[0])
        cache._temporal_order()
        return tuple(to_torch(x[..., : cache._idx, :]) for x in (cache.keys, cache.values))


class Quantized(Adapter):
    """Numbers are rounded. Each token that is read is taken for the nearest that was written, where that is near."""

    bits = 8

    def make(self, batch):
        return mlx_cache.QuantizedKVCache(group_size=32, bits=self.bits)

    def write(self, held, k, v, positions):
        inner, written = (None, (k, v)) if held is None else held
        if held is not None:
            written = tuple(torch.cat(pair, dim=2) for pair in zip(written, (k, v), strict=True))
        return super().write(inner, *(x.repeat(1, 1, 1, 4) for x in (k, v)), positions), written  # 32 channels at least

    def read(self, held):
        (_, *stored, _), written = held
        return tuple(self.nearest(x, exact) for x, exact in zip(stored, written, strict=True))

    def nearest(self, stored, written):
        """[b, g, s, d]"""
        read = to_torch(mx.dequantize(*stored, group_size=32, bits=self.bits))[..., : written.shape[3]].float()
        apart = (read[:, :, :, None] - written[:, :, None].float()).abs().amax(dim=-1)  # [b, g, s, n]
        least, token = apart.min(dim=-1)
        found = written.gather(2, token[..., None].expand(-1, -1, -1, written.shape[3]))
        return torch.where((least < 0.1)[..., None], found, read.to(found.dtype))

    def crop(self, held, lengths):
        return super().crop(held[0], lengths), held[1]


KINDS = (Growing, Concatenating, Quantized, Rotating, Batch, BatchRotating)
