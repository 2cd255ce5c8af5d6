"""Text models that exist inside larger ones only: one coordinate per token, halves paired, layers that differ."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import Layer, PositionSpec, Rotation


@family("granite_docling_text")
def _(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=_alike(keys))


@family("qwen3_omni_moe_talker_code_predictor")
def _(keys: Keys) -> PositionSpec:
    """The tokens of one frame of speech, counted from 0 in every frame."""
    count, window = keys.whole("num_hidden_layers"), keys.whole("sliding_window", None)
    first = keys.whole("max_window_layers", least=0)
    assumed = tuple("sliding_attention" if window and n >= first else "full_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    if "sliding_attention" in kinds:
        keys.find("error", "layer_types", "the code makes no mask for sliding layers and fails")
    return decoder(
        keys, rope(keys, d_head=head_width(keys)), kinds=kinds, coordinates="0, 1, 2, … within one frame of speech"
    )


@family("mllama_text_model")
def _(keys: Keys) -> PositionSpec:
    """Layers that look at the image, cross_attention_layers, have no positions; without an image they are left out."""
    count = keys.whole("num_hidden_layers")
    crossing = keys.numbers("cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38))
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    spec = decoder(keys, rope(keys, d_head=d_model // n_heads), kinds=_alike(keys), d_head=d_model // n_heads)
    to_image = Layer((), "cross_attention", causal=False)
    layers = tuple(to_image if n in crossing else layer for n, layer in enumerate(spec.layers))
    if any(n >= count for n in crossing):
        keys.find("warning", "cross_attention_layers", f"names layers beyond the last of {count}; there are none")
    return replace(spec, layers=layers)


@family("minimax_m3_vl_text")
def _(keys: Keys) -> PositionSpec:
    """Part of the head turns, as partial_rotary_factor says; rotary_dim, which published files have too, is not read."""
    d_head = keys.whole("head_dim", 128)
    use = rope(keys, d_head=d_head, partial=True)
    assert use is not None
    assert use.rotation is not None
    if keys.has("rotary_dim"):
        said, turning = keys.whole("rotary_dim"), use.rotation.width
        keys.find(
            "note" if said == turning else "error",
            "rotary_dim",
            f"not read: {turning} of {d_head} channels turn by partial_rotary_factor",
        )
    count, sparse = keys.whole("num_hidden_layers"), keys.table("sparse_attention_config")
    every = sparse.get("sparse_attention_freq") or [0] * count
    if not isinstance(every, list) or len(every) != count:
        raise ConfigError(f"{keys.where('sparse_attention_config')}.sparse_attention_freq: expected {count} numbers")
    kinds = keys.names("layer_types", tuple("minimax_m3_sparse" if f else "full_attention" for f in every), length=count)
    if "minimax_m3_sparse" in kinds:
        keys.find(
            "note",
            "layer_types",
            "sparse layers attend to blocks that an indexer selects; it turns its own queries "
            "and keys by the same angles, and counts blocks by slot, so that left padding moves them",
        )
    return decoder(keys, use, kinds=kinds, d_head=d_head)


@family("molmo2_text")
def _(keys: Keys) -> PositionSpec:
    """Scaled frequencies in the layers of rope_scaling_layers, all unless said; plain ones of the same base elsewhere."""
    use = rope(keys, d_head=head_width(keys))
    spec = decoder(keys, use, kinds=_alike(keys))
    scaled = keys.numbers("rope_scaling_layers", None)
    if scaled is None or use is None or use.rotation is None:
        return spec
    rotation = use.rotation
    plain = Rotation(rotation.width, rotation.base)
    said = tuple(pair for pair in use.said_by if pair[0] in ("base", "rotary_dim"))
    arguments = tuple((name, plain if value is rotation else value) for name, value in use.arguments)
    unscaled = replace(use, arguments=arguments, said_by=(*said, ("frequencies", keys.said_by("rope_scaling_layers"))))
    layers = tuple(layer if n in scaled else replace(layer, uses=(unscaled,)) for n, layer in enumerate(spec.layers))
    return replace(spec, layers=layers)


def _alike(keys: Keys) -> list[str]:
    return ["full_attention"] * keys.whole("num_hidden_layers")
