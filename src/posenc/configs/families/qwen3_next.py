"""Qwen3-Next, OLMo Hybrid and MiniMax: RoPE in attention layers among linear attention layers."""

from __future__ import annotations

from posenc.configs.assumed import scaled_without_width
from posenc.configs.families.jamba import DELTA, nope_among, rotary_among, with_window
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.schedule import FULL, RECURRENT, schedule
from posenc.configs.spec import PositionSpec


@family("qwen3_next")
def qwen3_next(keys: Keys) -> PositionSpec:
    """RoPE over a quarter of each head; every full_attention_interval-th layer is attention."""
    every = keys.whole("full_attention_interval", 4)
    return rotary_among(
        keys, schedule(keys, lambda n: RECURRENT if (n + 1) % every else FULL, (FULL, RECURRENT)), DELTA, 0.25
    )


@family("minimax")
def minimax(keys: Keys) -> PositionSpec:
    """Layers 0, 2, 4, … are full attention with RoPE; linear attention decays with distance."""
    kinds = schedule(keys, lambda n: RECURRENT if n % 2 else FULL, (FULL, RECURRENT))
    spec = rotary_among(keys, kinds, say("linear attention with a fixed decay for each head"))
    scaled_without_width(keys, next((use for layer in spec.layers for use in layer.uses), None))
    window = keys.whole("sliding_window", None)
    return with_window(spec, window)


@family("olmo_hybrid")
def olmo_hybrid(keys: Keys) -> PositionSpec:
    """Every fourth layer is attention, or the last one if there are fewer. rope_theta null, as published: no positions."""
    count = keys.whole("num_hidden_layers")
    kinds = schedule(keys, lambda n: FULL if n % 4 == 3 or (count < 4 and n == count - 1) else RECURRENT, (FULL, RECURRENT))
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    null = "rope_theta" in settings and settings["rope_theta"] is None
    if null or ("rope_theta" in keys.data and keys.data["rope_theta"] is None and not settings.get("rope_theta")):
        keys.note("rope_theta", say("null: attention layers have no positions"))
        return nope_among(keys, kinds, DELTA, "rope_theta", "rope_scaling", "rope_parameters")
    return rotary_among(keys, kinds, DELTA)
