"""dots.note 3: latent attention with different heads and bases in sliding and full layers, and its encoders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.assumed import longrope_of_layers
from posenc.configs.errors import ConfigError
from posenc.configs.families.deepseek_v3 import PAIRS, without_fraction
from posenc.configs.families.deepseek_v32 import indexer
from posenc.configs.family import decoder, family, parts
from posenc.configs.keys import Keys, facts
from posenc.configs.patches import BLOCKS, axial, even_head, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use

NOT_TEXT = ("model_type", "vision_config", "audio_config", "text_config", "architectures", "transformers_version", "dtype")


def with_text_config(keys: Keys, model_type: str) -> Keys:
    """The same keys; if the file has no text_config, but keys of one at the top level, they become text_config."""
    top = {name: value for name, value in keys.data.items() if name not in NOT_TEXT}
    known = facts()[model_type]["defaults"]
    if not keys.has("text_config") and any(name in known for name in top):
        keys.data["text_config"] = top | {"model_type": model_type}
        keys.read |= top
        keys.note(
            "text_config",
            say("not in the file: {owner} takes the settings at the top level for it", owner=keys.facts["class"]),
        )
    return keys


@family("dots3_note_text")
def dots3_note_text(keys: Keys) -> PositionSpec:
    """Sliding layers have their own heads and base; both kinds take interleaved pairs and return half pairs.

    The rotated channels are int(head_dim · (qk_rope_head_dim / head_dim)), with the sizes of the layer's kind.
    """
    count = keys.whole("num_hidden_layers")
    nested: dict[str, Any] | None = None
    if keys.has("per_layer_config"):  # numbers in a live configuration, strings in a file
        nested = {str(n): layer for n, layer in keys.table("per_layer_config").items()}
    kinds = list(keys.names("layer_types", None, length=count) or ())
    sparse = keys.flag("use_dsa", True if nested is None else None)
    if not kinds:
        full = "full_attention" if sparse is False else "indexed_attention"
        sliding = keys.flag("use_sliding_window", True)
        kinds = [full if not sliding or n < 2 or n % 4 == 1 else "sliding_attention" for n in range(count)]
    if sparse is not None:
        old, new = ("full_attention", "indexed_attention") if sparse else ("indexed_attention", "full_attention")
        kinds = [new if kind == old else kind for kind in kinds]
    window = keys.whole("sliding_window", None) or keys.whole("sliding_window_size", 512)
    labels = tuple(sorted(set(kinds)))
    uses = {kind: _of_kind(keys, kind, kinds.index(kind), nested, labels) for kind in labels}
    layers = [
        Layer((use,) if (use := uses[kind]) else (), kind, window if kind == "sliding_attention" else None)
        for kind in kinds
    ]
    spec = decoder(keys, None, kinds=kinds, by_kind=dict.fromkeys(labels), d_head=keys.whole("head_dim"))
    longrope_of_layers(keys, replace(spec, layers=tuple(layers)))
    indexed = [n for n, kind in enumerate(kinds) if kind == "indexed_attention"]
    inside = (indexer(keys, uses["indexed_attention"], indexed, PAIRS, trailing=False),) if indexed else ()
    return replace(spec, layers=tuple(layers), parts=inside)


SLIDING = {"qk_nope_head_dim": 192, "head_dim": 256}  # constants of the class for sliding layers


def _of_kind(keys: Keys, kind: str, first: int, nested: dict[str, Any] | None, labels: tuple[str, ...]) -> Use | None:
    layer: dict[str, Any] = (nested or {}).get(str(first)) or {}
    if nested is None and kind == "sliding_attention":
        layer = {name: keys.whole(f"swa_{name}", value) for name, value in SLIDING.items()}
        layer["qk_rope_head_dim"] = keys.whole("swa_qk_rope_head_dim", layer["head_dim"] - layer["qk_nope_head_dim"])
    sizes = {name: layer.get(name, keys.whole(name)) for name in ("qk_rope_head_dim", "qk_nope_head_dim", "head_dim")}
    rotary_dim, still, width = sizes["qk_rope_head_dim"], sizes["qk_nope_head_dim"], sizes["head_dim"]
    where: dict[str, Any] = {"label": kind, "labels": labels}
    if not keys.has("rope_parameters") and not keys.has("rope_scaling"):
        base_key = "swa_rope_theta" if kind == "sliding_attention" else "rope_theta"
        assumed = 50000.0 if kind == "sliding_attention" else None
        where = {"base_key": base_key, "base": assumed if assumed and not keys.has(base_key) else None}
    use = rope(
        without_fraction(keys, rotary_dim, width, kind),
        d_head=still + rotary_dim,
        rotary_dim=int(width * (rotary_dim / width)),
        layout="interleaved",
        returns="half",
        trailing=True,
        **where,
    )
    return None if use is None else replace(use, fraction=rotary_dim / width)


@family("dots3_note_audio_encoder")
def dots3_note_audio_encoder(keys: Keys) -> PositionSpec:
    """RoPE over half of each head, half pairs; positions count frames after the convolutions."""
    old = keys.table("whisper_config")
    if old:
        raise ConfigError(f"{keys.where('whisper_config')}: an old spelling of this encoder; save it with transformers 5")
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if d_model % n_heads:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is not a multiple of num_attention_heads={n_heads}")
    use = rope(keys, d_head=d_model // n_heads, partial=True, partial_default=0.5, base=_class_base(keys))
    return tower(keys, [use] if use else [], length=keys.whole("max_position_embeddings"))


def _class_base(keys: Keys) -> float | None:
    """The class's default base, if this part of the file has no rotary settings."""
    silent = not (keys.has("rope_parameters") or keys.has("rope_scaling") or keys.has("rope_theta"))
    return float(keys.facts["base"]) if silent and keys.facts["base"] else None


@family("dots3_note_vision_encoder", "glm5_next_vision")
def dots3_note_vision_encoder(keys: Keys) -> PositionSpec:
    layers = "num_hidden_layers" if keys.family.startswith("dots3") else "depth"
    heads = "num_attention_heads" if keys.family.startswith("dots3") else "num_heads"
    return tower(keys, [axial(keys, even_head(keys, heads=heads))], layers=layers, heads=heads, coordinates=BLOCKS)


@family("dots3_note")
def dots3_note(keys: Keys) -> PositionSpec:
    keys = with_text_config(keys, "dots3_note_text")
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config", "audio_config"))
