"""Latent attention in layers of several kinds: by window, without rotation, at learned frequencies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.families.flat import with_text
from posenc.dialects.families.latent import indexer, indexer_types, latent, stack, without_fraction
from posenc.dialects.family import decoder, family, parts
from posenc.dialects.keys import Keys
from posenc.dialects.patches import BLOCKS, axial, even_head, tower
from posenc.dialects.rotary import rope
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

LEARNED = "encodings.learned_rope.LeRoPE"


@family("mistral_large4_text")
def _(keys: Keys) -> PositionSpec:
    """ω·exp(α) with α from the checkpoint, in three of four layers; queries × scale_h·ln(p + 1) + bias_h in all."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    keys = with_assumed(
        keys,
        {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 2048.0,
            "original_max_position_embeddings": 512,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "attention_factor": 1.0,
        },
    )
    turning = keys.numbers("no_rope_layers", None, length=count)
    if turning is None:
        every = keys.whole("no_rope_layer_interval", 4)
        turning = tuple(int((n + 1) % every != 0) for n in range(count))
    keys.find("note", "no_rope_layers", "1 means that the layer turns, 0 that it does not, whatever the name says")
    keys.find(
        "note",
        "rope_parameters",
        "frequencies are multiplied by exp(α), a buffer of the checkpoint "
        "(rotary_emb.alpha): the configuration alone gives those of α = 0",
    )
    plain = latent(keys, interleave=True)
    assert plain is not None
    learned = replace(plain, encoding=LEARNED, weights=(Weight("alpha", "rotary_emb.alpha"),))
    layers, own = [], []
    types = indexer_types(keys, count)
    for number, (kind, turns) in enumerate(zip(kinds, turning, strict=True)):
        sharper = _sharper(keys, "num_attention_heads", "layers.{layer}.self_attn.softmax_scaling")
        layers.append(Layer((learned, sharper) if turns else (sharper,), kind))
        index = [replace(use, encoding=LEARNED, weights=learned.weights) for use in _indexer_uses(keys, plain)]
        index.append(_sharper(keys, "index_n_heads", "layers.{layer}.self_attn.indexer.softmax_scaling"))
        mine = tuple(index if turns else index[-1:])
        own.append(Layer(mine, "indexer") if types[number] != "shared" else Layer((), "shared_indexer"))
    spec = stack(keys, plain, kinds)
    inside = PositionSpec(
        keys.family,
        part="indexer",
        layers=tuple(own),
        d_head=keys.whole("index_head_dim"),
        n_heads=keys.whole("index_n_heads"),
    )
    return replace(spec, layers=tuple(layers), parts=(inside,))


def _indexer_uses(keys: Keys, use: Use) -> tuple[Use, ...]:
    return indexer(keys, use, [0], pairs=True, trailing=False).layers[0].uses


def _sharper(keys: Keys, heads: str, module: str) -> Use:
    return Use(
        "encodings.temperature.LearnedTemperature",
        (("n_heads", keys.whole(heads)),),
        (("n_heads", keys.said_by(heads)),),
        (Weight("scale", f"{module}.scale"), Weight("intercept", f"{module}.bias")),
    )


@family("mistral_large4")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))


@family("dots3_note_text")
def _(keys: Keys) -> PositionSpec:
    """Sliding layers have heads and a base of their own; both kinds take neighbours in and give halves out.

    The channels that turn are int(head_dim · (qk_rope_head_dim / head_dim)), from numbers of the layer's kind.
    """
    count = keys.whole("num_hidden_layers")
    nested = keys.table("per_layer_config") if keys.has("per_layer_config") else {}
    kinds = list(keys.names("layer_types", None, length=count) or ())
    sparse = keys.flag("use_dsa", None if nested else True)
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
    own = [n for n, kind in enumerate(kinds) if kind == "indexed_attention"]
    inside = (indexer(keys, uses["indexed_attention"], own, pairs=True, trailing=False),) if own else ()
    return replace(spec, layers=tuple(layers), parts=inside)


SLIDING = {"qk_nope_head_dim": 192, "head_dim": 256}  # constants of the class for sliding layers


def _of_kind(keys: Keys, kind: str, first: int, nested: dict[str, Any], labels: tuple[str, ...]) -> Use | None:
    layer: dict[str, Any] = nested.get(str(first)) or {}
    if not nested and kind == "sliding_attention":
        layer = {name: keys.whole(f"swa_{name}", value) for name, value in SLIDING.items()}
        layer["qk_rope_head_dim"] = keys.whole("swa_qk_rope_head_dim", layer["head_dim"] - layer["qk_nope_head_dim"])
    sizes = {name: layer.get(name, keys.whole(name)) for name in ("qk_rope_head_dim", "qk_nope_head_dim", "head_dim")}
    rotary_dim, still, width = sizes["qk_rope_head_dim"], sizes["qk_nope_head_dim"], sizes["head_dim"]
    if not keys.has("rope_parameters") and not keys.has("rope_scaling"):
        base_key = "swa_rope_theta" if kind == "sliding_attention" else "rope_theta"
        assumed = 50000.0 if kind == "sliding_attention" else None
        base = assumed if assumed and not keys.has(base_key) else None
        return rope(
            keys,
            d_head=still + rotary_dim,
            rotary_dim=int(width * (rotary_dim / width)),
            layout="interleaved",
            returns="half",
            trailing=True,
            base_key=base_key,
            base=base,
        )
    keys = without_fraction(keys, rotary_dim, width, kind)
    return rope(
        keys,
        d_head=still + rotary_dim,
        rotary_dim=int(width * (rotary_dim / width)),
        layout="interleaved",
        returns="half",
        trailing=True,
        label=kind,
        labels=labels,
    )


@family("dots3_note_audio_encoder")
def _(keys: Keys) -> PositionSpec:
    """Half of each head turns, halves paired; frames after the convolutions are counted from 0."""
    old = keys.table("whisper_config")
    if old:
        raise ConfigError(f"{keys.where('whisper_config')}: an old spelling of this tower; save it with transformers 5")
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if d_model % n_heads:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is not a multiple of num_attention_heads={n_heads}")
    use = rope(keys, d_head=d_model // n_heads, partial=True, partial_default=0.5, base=_class_base(keys))
    return tower(keys, [use] if use else [], length=keys.whole("max_position_embeddings"))


def _class_base(keys: Keys) -> float | None:
    """The class's own base where a part of a file says nothing at all about rotation."""
    silent = not (keys.has("rope_parameters") or keys.has("rope_scaling") or keys.has("rope_theta"))
    return float(keys.facts["base"]) if silent and keys.facts["base"] else None


@family("dots3_note_vision_encoder", "glm5_next_vision")
def _(keys: Keys) -> PositionSpec:
    layers = "num_hidden_layers" if keys.family.startswith("dots3") else "depth"
    heads = "num_attention_heads" if keys.family.startswith("dots3") else "num_heads"
    return tower(keys, [axial(keys, even_head(keys, heads=heads))], layers=layers, heads=heads, coordinates=BLOCKS)


@family("dots3_note")
def _(keys: Keys) -> PositionSpec:
    keys = with_text(keys, "dots3_note_text")
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config", "audio_config"))


@family("glm5_next_text")
def _(keys: Keys) -> PositionSpec:
    """No rotation: order comes from the linear layers, three of four; their indexers pool keys with a learned gate."""
    if keys.whole("qk_rope_head_dim", 0, least=0):
        raise ConfigError(f"{keys.where('qk_rope_head_dim')}: the class takes 0 only: nothing turns in this family")
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count)
    kinds = kinds or ["indexed_attention" if n % 4 == 3 else "linear_attention" for n in range(count)]
    kinds = ["indexed_attention" if kind == "full_attention" else kind for kind in kinds]
    return stack(keys, None, kinds, coordinates="none: order comes from the causal linear attention layers")


@family("glm5_next")
def _(keys: Keys) -> PositionSpec:
    keys = with_text(keys, "glm5_next_text")
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))
