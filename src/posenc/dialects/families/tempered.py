"""RoPE in every layer, and queries that sharpen with their position."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec, Use


@family("ministral3")
def _(keys: Keys) -> PositionSpec:
    """YaRN and Llama 4's temperature by position (Llama 4 itself counts one more), both from the rotary settings."""
    length = keys.whole("max_position_embeddings")
    keys = with_assumed(
        keys,
        {
            "type": "yarn",
            "rope_theta": 1000000.0,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "max_position_embeddings": length,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale_all_dim": 1.0,
            "mscale": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    )
    name = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    inner = Keys(keys.table(name), "", keys.where(name))
    scale, step = inner.number("llama_4_scaling_beta", None), inner.whole("original_max_position_embeddings", None)
    if step is None and inner.get("rope_type", inner.get("type", "")) in ("yarn", "llama3", "longrope"):
        step = length  # written there by the class
    for key, value in (("llama_4_scaling_beta", scale), ("original_max_position_embeddings", step)):
        if value is None:
            raise ConfigError(
                f"{inner.where(key)}: missing; the family's code multiplies queries by it in every layer, and fails without"
            )
    also = ("llama_4_scaling_beta", "max_position_embeddings", "original_max_position_embeddings")
    use = rope(keys, d_head=head_width(keys), also_read=also)
    window = keys.whole("sliding_window", None)
    sharper = Use(
        "encodings.temperature.FloorLogTemperature",
        (("scale", scale), ("length", step), ("offset", 0)),
        (
            ("scale", inner.where("llama_4_scaling_beta")),
            ("offset", "constant of the code"),
            ("length", inner.where("original_max_position_embeddings")),
        ),
    )
    keys.find(
        "note",
        f"{name}.llama_4_scaling_beta",
        f"queries grow by a step at position {step}, where Llama 4, whose "
        f"formula this is, has it at {step - 1}: it counts tokens, not positions",
    )
    kind = "full_attention" if window is None else "sliding_attention"
    spec = decoder(keys, use, kinds=[kind] * keys.whole("num_hidden_layers"))
    return replace(spec, layers=tuple(replace(layer, uses=(*layer.uses, sharper)) for layer in spec.layers))
