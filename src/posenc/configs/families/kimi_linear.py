"""Kimi Linear, Bailing Hybrid and GLM 5: latent attention among linear attention layers, often without RoPE."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.families.deepseek_v3 import latent, stack
from posenc.configs.families.dots3_note import with_text_config
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("bailing_hybrid")
def bailing_hybrid(keys: Keys) -> PositionSpec:
    """Every layer_group_size-th layer is full attention; the others are linear, without positions."""
    count, every = keys.whole("num_hidden_layers"), keys.whole("layer_group_size", 6)
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        kinds = ["linear_attention" if (n + 1) % every else "full_attention" for n in range(count)]
    return stack(keys, latent(keys, interleave=True), kinds)


@family("kimi_linear")
def kimi_linear(keys: Keys) -> PositionSpec:
    """No rotation: order comes from the linear layers; qk_rope_head_dim channels are ordinary channels."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        lists = keys.table("linear_attn_config")
        full, linear = lists.get("full_attn_layers"), lists.get("kda_layers")
        if full is not None and linear is not None:
            kinds = ["full_attention" if n + 1 in full else "linear_attention" for n in range(count)]
        else:
            kinds = ["full_attention" if n and n % 4 == 0 else "linear_attention" for n in range(count)]
    keys.note("qk_rope_head_dim", say("despite the name, these channels are not rotated"))
    return stack(keys, None, kinds, coordinates=say("none: order comes from the causal linear attention layers"))


@family("glm5_next_text")
def glm5_next_text(keys: Keys) -> PositionSpec:
    """No rotation: order comes from the linear layers, three of four; the indexers pool keys with a learned gate."""
    if keys.whole("qk_rope_head_dim", 0, least=0):
        raise ConfigError(f"{keys.where('qk_rope_head_dim')}: the class takes 0 only: nothing turns in this family")
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count)
    kinds = kinds or ["indexed_attention" if n % 4 == 3 else "linear_attention" for n in range(count)]
    kinds = ["indexed_attention" if kind == "full_attention" else kind for kind in kinds]
    return stack(keys, None, kinds, coordinates=say("none: order comes from the causal linear attention layers"))


@family("glm5_next")
def glm5_next(keys: Keys) -> PositionSpec:
    keys = with_text_config(keys, "glm5_next_text")
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))
