"""Mistral 4, Mistral Large 4 and Ministral 3: RoPE, and queries scaled by their position."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.families.deepseek_v3 import PAIRS, latent, stack
from posenc.configs.families.deepseek_v32 import indexer, indexer_types
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("mistral4")
def mistral4(keys: Keys) -> PositionSpec:
    """RoPE over the last channels, and queries scaled by 1 + β·ln(1 + ⌊p/original length⌋)."""
    keys = with_assumed(
        keys,
        {
            "type": "yarn",
            "rope_theta": 10000.0,
            "factor": 128.0,
            "original_max_position_embeddings": 8192,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale_all_dim": 1.0,
            "mscale": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    )
    use = latent(keys, whole=True)
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    scale, length = settings.get("llama_4_scaling_beta"), settings.get("original_max_position_embeddings")
    if not (isinstance(scale, (int, float)) and isinstance(length, int) and scale > 0 and length > 0):
        raise ConfigError(
            say(
                "{where}: the code multiplies queries by llama_4_scaling_beta and original_max_position_embeddings and "
                "needs both, got {scale!r} and {length!r}",
                where=keys.where("rope_parameters"),
                scale=scale,
                length=length,
            )
        )
    where = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    said_by = (
        ("scale", f"{where}.llama_4_scaling_beta"),
        ("trained_length", f"{where}.original_max_position_embeddings"),
        ("offset", "constant of the code"),
    )
    growing = Use(
        "encodings.bases.temperature.FloorLogTemperature",
        (("scale", scale), ("trained_length", length), ("offset", 0)),
        said_by,
    )
    spec = stack(keys, use, ["full_attention"] * keys.whole("num_hidden_layers"))
    return replace(spec, layers=tuple(replace(layer, uses=(*layer.uses, growing)) for layer in spec.layers))


LEARNED = "encodings.bases.learned_rope.LeRoPE"


@family("mistral_large4_text")
def mistral_large4_text(keys: Keys) -> PositionSpec:
    """Frequencies ω·exp(α) with α from the checkpoint, in three of four layers.

    Queries × scale_h·ln(p + 1) + bias_h in all.
    """
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    keys = with_assumed(keys)
    turning = keys.numbers("no_rope_layers", None, length=count)
    if turning is None:
        every = keys.whole("no_rope_layer_interval", 4)
        turning = tuple(int((n + 1) % every != 0) for n in range(count))
    keys.note("no_rope_layers", say("1 means that the layer uses RoPE, 0 that it does not, despite the name"))
    keys.note(
        "rope_parameters",
        say(
            "frequencies are multiplied by exp(α), a buffer of the checkpoint (rotary_emb.alpha); "
            "the configuration alone gives those of α = 0"
        ),
    )
    plain = latent(keys, interleave=True)
    assert plain is not None
    learned = replace(plain, encoding=LEARNED, weights=(Weight("alpha", "rotary_emb.alpha"),))
    layers, index_layers = [], []
    types = indexer_types(keys, count)
    in_indexer = indexer(keys, plain, [0], PAIRS, trailing=False).layers[0]
    for number, (kind, turns) in enumerate(zip(kinds, turning, strict=True)):
        sharper = _sharper(keys, "num_attention_heads", "layers.{layer}.self_attn.softmax_scaling")
        layers.append(Layer((learned, sharper) if turns else (sharper,), kind))
        index = [replace(use, encoding=LEARNED, weights=learned.weights) for use in in_indexer.uses]
        index.append(_sharper(keys, "index_n_heads", "layers.{layer}.self_attn.indexer.softmax_scaling"))
        uses_of_layer = tuple(index if turns else index[-1:])
        index_layers.append(Layer(uses_of_layer, "indexer") if types[number] != "shared" else Layer((), "shared_indexer"))
    spec = stack(keys, plain, kinds)
    inside = PositionSpec(
        keys.family,
        part="indexer",
        layers=tuple(index_layers),
        d_head=keys.whole("index_head_dim"),
        n_heads=keys.whole("index_n_heads"),
    )
    return replace(spec, layers=tuple(layers), parts=(inside,))


def _sharper(keys: Keys, heads: str, module: str) -> Use:
    return Use(
        "encodings.bases.temperature.LearnedTemperature",
        (("n_heads", keys.whole(heads)),),
        (("n_heads", keys.said_by(heads)),),
        (Weight("scale", f"{module}.scale"), Weight("intercept", f"{module}.bias")),
    )


@family("ministral3")
def ministral3(keys: Keys) -> PositionSpec:
    """YaRN, and Llama 4's temperature by position, both from the rotary settings; Llama 4 itself counts one more."""
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
    scale = inner.number("llama_4_scaling_beta", None, positive=False)
    step = inner.whole("original_max_position_embeddings", None)
    if step is None and inner.get("rope_type", inner.get("type", "")) in ("yarn", "llama3", "longrope"):
        step = length  # written there by the class
    for key, value in (("llama_4_scaling_beta", scale), ("original_max_position_embeddings", step)):
        if value is None:
            raise ConfigError(
                say(
                    "{where}: missing; the code scales queries by it in every layer, and fails without it",
                    where=inner.where(key),
                )
            )
    also = ("llama_4_scaling_beta", "max_position_embeddings", "original_max_position_embeddings")
    use = rope(keys, d_head=head_width(keys), also_read=also)
    window = keys.whole("sliding_window", None)
    kind = "full_attention" if window is None else "sliding_attention"
    spec = decoder(keys, use, kinds=[kind] * keys.whole("num_hidden_layers"))
    if scale == 0:  # Devstral 2: the scale is 1 everywhere
        return spec
    sharper = Use(
        "encodings.bases.temperature.FloorLogTemperature",
        (("scale", scale), ("trained_length", step), ("offset", 0)),
        (
            ("scale", inner.where("llama_4_scaling_beta")),
            ("offset", "constant of the code"),
            ("trained_length", inner.where("original_max_position_embeddings")),
        ),
    )
    keys.note(
        f"{name}.llama_4_scaling_beta",
        say(
            "the scale of queries steps at position {step}; in Llama 4, whose formula this is, at "
            "{position}, since it counts tokens",
            step=step,
            position=step - 1,
        ),
    )
    return replace(spec, layers=tuple(replace(layer, uses=(*layer.uses, sharper)) for layer in spec.layers))
