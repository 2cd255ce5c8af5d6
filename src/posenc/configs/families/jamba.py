"""Jamba and other hybrids with state space layers; half pairs where RoPE is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, RECURRENT, SLIDING, attention_among, schedule
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words

SSM, CONV, DELTA = (say("state space models"), say("short convolutions"), say("gated delta rules"))


@family("bamba")
def bamba(keys: Keys) -> PositionSpec:
    """RoPE over half of each head; the class ignores partial_rotary_factor outside rope_parameters."""
    at = keys.numbers("attn_layer_indices", ())
    kinds = [FULL if n in at else RECURRENT for n in range(keys.whole("num_hidden_layers"))]
    if keys.number("partial_rotary_factor", 0.5) != 0.5:
        keys.error("partial_rotary_factor", say("the class uses 0.5, unless rope_parameters has it"))
        keys = keys.replaced(without=("partial_rotary_factor",))
    return rotary_among(keys, kinds, SSM, 0.5)


@family("falcon_h1")
def falcon_h1(keys: Keys) -> PositionSpec:
    """Each layer has attention and a state space model in parallel."""
    keys.note("num_hidden_layers", say("every layer has a state space model beside its attention, which also keeps order"))
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=["hybrid"] * keys.whole("num_hidden_layers"))


@family("granitemoehybrid")
def granitemoehybrid(keys: Keys) -> PositionSpec:
    """No positions unless position_embedding_type is "rope"."""
    kinds = schedule(keys, lambda n: RECURRENT, (FULL, RECURRENT))
    if keys.text("position_embedding_type", None) == "rope":
        return rotary_among(keys, kinds, SSM)
    keys.note("position_embedding_type", say('not "rope": attention has no positions, and the base is not used'))
    return nope_among(keys, kinds, SSM, "rope_theta", "rope_scaling", "rope_parameters")


@family("recurrent_gemma")
def recurrent_gemma(keys: Keys) -> PositionSpec:
    """block_types repeats over the layers; all attention has a window, and half of each head rotates."""
    blocks = keys.names("block_types")
    if not blocks:
        raise ConfigError(f"{keys.where('block_types')}: expected at least one of 'recurrent' and 'attention', got none")
    kinds = [
        RECURRENT if blocks[n % len(blocks)] == "recurrent" else SLIDING for n in range(keys.whole("num_hidden_layers"))
    ]
    kept = attention_among(keys, kinds, (RECURRENT,), say("gated linear recurrences"))
    d_model, n_heads, window = (
        keys.whole("hidden_size"),
        keys.whole("num_attention_heads"),
        keys.whole("attention_window_size"),
    )
    d_head = d_model // n_heads
    if keys.has("head_dim") and keys.whole("head_dim") != d_head:
        keys.error("head_dim", say("the class overwrites it with hidden_size / num_attention_heads"))
    spec = decoder(
        keys, rope(keys, d_head=d_head, partial=True, partial_default=0.5), kinds=kept, d_head=d_head, length=None
    )
    return with_window(spec, window)


def with_window(spec: PositionSpec, window: int | None) -> PositionSpec:
    """The same spec; every attention layer has this window."""
    return replace(spec, layers=tuple(replace(layer, window=window) if layer.attends else layer for layer in spec.layers))


@family("jamba")
def jamba(keys: Keys) -> PositionSpec:
    """Attention in every attn_layer_period-th layer from attn_layer_offset on, without positions."""
    period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", least=0)
    kinds = [FULL if n % period == offset else RECURRENT for n in range(keys.whole("num_hidden_layers"))]
    return nope_among(keys, kinds, SSM)


@family("zamba")
def zamba(keys: Keys) -> PositionSpec:
    """Hybrid layers share one attention of twice the width, without positions."""
    period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", least=0)
    assumed = [RECURRENT, RECURRENT, "hybrid"]
    assumed += ["hybrid" if n % period == offset else RECURRENT for n in range(keys.whole("num_hidden_layers") - 3)]
    kinds = schedule(keys, lambda n: assumed[n], ("hybrid", RECURRENT), key="layers_block_type")
    d_head = 2 * keys.whole("hidden_size") // keys.whole("num_attention_heads")
    kept = attention_among(keys, kinds, (RECURRENT,), SSM)
    return decoder(keys, None, kinds=kept, d_head=keys.whole("attention_head_dim", d_head), coordinates=CACHE_ONLY)


@family("zamba2")
def zamba2(keys: Keys) -> PositionSpec:
    """As Zamba; use_mem_rope rotates the shared attention's heads, which have width 2 · hidden_size / heads."""
    assumed = [
        RECURRENT,
        *([RECURRENT] * 5 + ["hybrid"]) * 7,
        *[RECURRENT] * 4,
        "hybrid",
        *[RECURRENT] * 3,
        "hybrid",
        *[RECURRENT] * 2,
    ]
    if not keys.has("layers_block_type") and keys.whole("num_hidden_layers") != len(assumed):
        raise ConfigError(f"{keys.where('layers_block_type')}: missing; the class assumes a list of {len(assumed)} layers")
    kinds = schedule(keys, lambda n: assumed[n], ("hybrid", RECURRENT), key="layers_block_type")
    kept = attention_among(keys, kinds, (RECURRENT,), SSM)
    d_head = 2 * keys.whole("hidden_size") // keys.whole("num_attention_heads")
    length = 16384 if keys.flag("use_long_context", False) else keys.whole("max_position_embeddings")
    if not keys.flag("use_mem_rope", False):
        keys.note("use_mem_rope", say("false: attention has no positions, and the base is not used"))
        mark_read(keys, "rope_theta", "rope_scaling", "rope_parameters")
        return decoder(keys, None, kinds=kept, d_head=d_head, length=length, coordinates=CACHE_ONLY)
    return decoder(keys, rope(keys, d_head=d_head), kinds=kept, d_head=d_head, length=length)


CACHE_ONLY = say("0, 1, 2, … for the cache; attention has no positions")


def rotary_among(keys: Keys, kinds: Sequence[str], why: Words, fraction: float | None = None) -> PositionSpec:
    """Attention layers with RoPE; `fraction` of the head if the family reads partial_rotary_factor."""
    kept = attention_among(keys, kinds, (RECURRENT, "conv"), why)
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, partial=fraction is not None, partial_default=fraction or 1.0)
    return decoder(keys, use, kinds=kept, d_head=d_head)


def nope_among(keys: Keys, kinds: Sequence[str], why: Words, *ignored: str) -> PositionSpec:
    """Attention layers without positions."""
    kept = attention_among(keys, kinds, (RECURRENT,), why)
    mark_read(keys, *ignored)
    return decoder(keys, None, kinds=kept, coordinates=CACHE_ONLY)


def mark_read(keys: Keys, *names: str) -> None:
    """Marks keys as read that the class accepts and does not use; a note says so."""
    for name in names:
        keys.get(name, None)
