"""Qwen2, Qwen3 and dots1: RoPE, half pairs; some layers have a window if use_sliding_window is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, sliding_where
from posenc.configs.spec import PositionSpec

CHUNKS = "dual_chunk_attention_config"


@family("qwen3_moe")
def qwen3_moe(keys: Keys) -> PositionSpec:
    """All layers have the window if use_sliding_window is set."""
    window = _if_used(keys)
    return _through(keys, same_kind(keys, SLIDING if window else FULL), window)


@family("qwen2", "qwen3")
def qwen2(keys: Keys) -> PositionSpec:
    """The layers from max_window_layers on have the window if use_sliding_window is set."""
    return _first_full(keys, _if_used(keys))


@family("dots1")
def dots1(keys: Keys) -> PositionSpec:
    """As Qwen2, but a window is used whenever it is given."""
    return _first_full(keys, keys.whole("sliding_window", None))


@family("qwen2_moe")
def qwen2_moe(keys: Keys) -> PositionSpec:
    """Every second layer below max_window_layers slides; in Qwen2, the layers from there on do."""
    window, last = _if_used(keys), keys.whole("max_window_layers", least=0)
    kinds = sliding_where(keys, lambda n: window is not None and n % 2 == 0 and n < last)
    return _through(keys, kinds, window)


def _if_used(keys: Keys) -> int | None:
    """The window, or None if use_sliding_window is false, which is the default."""
    window: int | None = keys.whole("sliding_window", None, least=0) or None  # saved as 0 or null where not in use
    if keys.flag("use_sliding_window", False):
        return window
    if window and keys.has("sliding_window"):
        keys.note("sliding_window", say("not used: use_sliding_window is false"))
    return None


def _first_full(keys: Keys, window: int | None) -> PositionSpec:
    first = keys.whole("max_window_layers", least=0)
    kinds = sliding_where(keys, lambda n: window is not None and n >= first)
    return _through(keys, kinds, window)


def _through(keys: Keys, kinds: Sequence[str], window: int | None) -> PositionSpec:
    """The layers of these kinds; sliding ones have this window, whatever the file's sliding_window is."""
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=[FULL] * len(kinds))
    layers = [
        replace(layer, kind=kind, window=window if kind == SLIDING else None)
        for layer, kind in zip(spec.layers, kinds, strict=True)
    ]
    return replace(spec, layers=tuple(layers), trained_length=_before_chunks(keys, spec.trained_length))


def _before_chunks(keys: Keys, length: int | None) -> int | None:
    """The trained length: max_position_embeddings, or what it was before dual chunk attention, which transformers lacks."""
    chunks = keys.table(CHUNKS)
    if not chunks:
        return length
    original: int | None = Keys(chunks, "", keys.where(CHUNKS)).whole("original_max_position_embeddings", length)
    keys.warning(
        CHUNKS,
        say(
            "vLLM reads it; transformers does not, so that distances beyond {original} are outside training there",
            original=original,
        ),
    )
    return original
