"""Cohere, ERNIE 4.5 and Helium: RoPE with interleaved pairs. Cohere 2 rotates in sliding-window layers only."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("cohere2")
def cohere2(keys: Keys) -> PositionSpec:
    """Every sliding_window_pattern-th layer is full if layer_types is missing."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or _by_pattern(count, keys.whole("sliding_window_pattern", 4))
    d_head = keys.whole("hidden_size") // keys.whole("num_attention_heads")
    use = rope(keys, d_head=d_head, layout="interleaved")
    if keys.whole("sliding_window", None) is None:
        keys.warning("sliding_window", say("null: RoPE is used only with a window, so no layer has positions"))
        use = None
    return decoder(keys, None, kinds=kinds, by_kind={"sliding_attention": use, "full_attention": None}, d_head=d_head)


@family("cohere2_moe")
def cohere2_moe(keys: Keys) -> PositionSpec:
    """The dense layers at the start have a pattern of their own; they use RoPE in any case if that pattern is 1."""
    count = keys.whole("num_hidden_layers")
    dense, first = keys.whole("first_k_dense_replace", 0, least=0), keys.whole("prefix_dense_sliding_window_pattern")
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        kinds = _by_pattern(dense, first) + _by_pattern(count - dense, keys.whole("sliding_window_pattern"))
    experts = keys.names("mlp_layer_types", None, length=count) or ("dense",) * dense + ("sparse",) * (count - dense)
    if keys.data.pop("rope_scaling", None):
        keys.warning("rope_scaling", say("Cohere2MoeConfig reads rope_parameters only: nothing is scaled"))
    if not keys.has("rope_parameters"):  # what its class shows as a default is made from rope_theta
        keys.data["rope_parameters"] = {"rope_type": "default"}
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, layout="interleaved")
    window = keys.whole("sliding_window", None)
    spec = decoder(keys, None, kinds=kinds, by_kind={"sliding_attention": None, "full_attention": None}, d_head=d_head)
    layers = []
    for layer, expert in zip(spec.layers, experts, strict=True):
        sliding = layer.kind == "sliding_attention" and window is not None
        turns = sliding or (expert == "dense" and first == 1)
        layers.append(Layer((use,) if turns and use else (), layer.kind, layer.window))
    return replace(spec, layers=tuple(layers))


def _by_pattern(count: int, every: int) -> tuple[str, ...]:
    return tuple("sliding_attention" if (n + 1) % every else "full_attention" for n in range(count))


@family("cohere", "ernie4_5", "ernie4_5_moe", "helium")
def cohere(keys: Keys) -> PositionSpec:
    return decoder(keys, rope(keys, d_head=head_width(keys), layout="interleaved"))
