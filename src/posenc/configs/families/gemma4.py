"""Gemma 4's text models: full layers have wider heads, of which a part rotates ("proportional")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.configs.assumed import longrope_of_layers, with_assumed
from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.families.gemma3 import bidirectional_within, per_kind, shared_keys, sliding_pattern
from posenc.configs.family import decoder, family, parts, read_section
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, sliding_where
from posenc.configs.spec import PositionSpec


@family("diffusion_gemma_text")
def diffusion_gemma_text(keys: Keys) -> PositionSpec:
    """Every sixth layer and the last are full, with wider heads of which a quarter rotates."""
    keys.note(
        "layer_types",
        say(
            "these are the layers of the encoder; the decoder's are the same, bidirectional within "
            "the generated block, and continue its positions"
        ),
    )
    if keys.text("use_bidirectional_attention", None, among=("all", "vision")) == "all":
        keys.warning(
            "use_bidirectional_attention", say("has no effect on the mask: the encoder stays causal if masks are given")
        )
    return _gemma4(keys, lambda n: (n + 1) % 6 != 0)


@family("gemma4_text", "gemma4_unified_text")
def gemma4_text(keys: Keys) -> PositionSpec:
    """Every sixth layer and the last are full. The last num_kv_shared_layers use the keys of earlier layers."""
    spec = _gemma4(keys, lambda n: (n + 1) % 6 != 0)
    spec = shared_keys(spec, keys.whole("num_kv_shared_layers", 0, least=0))
    both = keys.text("use_bidirectional_attention", None, among=("all", "vision"))
    if both == "vision":
        keys.note("use_bidirectional_attention", say("sliding layers also look ahead within one image, not within text"))
    if both != "all":
        return spec
    reach = keys.whole("sliding_window") // 2 + 1
    keys.warning(
        "sliding_window",
        say(
            "tokens up to {reach} away are visible on either side, one more than in Gemma 3 with the same value",
            reach=reach,
        ),
    )
    return bidirectional_within(spec, 2 * reach + 1)


@family("embedding_gemma2_text")
def embedding_gemma2_text(keys: Keys) -> PositionSpec:
    """An encoder: all layers are bidirectional; sliding layers see sliding_window tokens on each side."""
    spec = _gemma4(keys, sliding_pattern(keys, 6))
    return bidirectional_within(spec, 2 * keys.whole("sliding_window") + 1)


def _gemma4(keys: Keys, slides: Any) -> PositionSpec:
    kinds = list(sliding_where(keys, slides))
    if kinds[-1] != FULL:
        if keys.has("layer_types"):
            keys.warning("layer_types", say("the last layer is always full attention"))
        kinds[-1] = FULL
    widths = _widths(keys, kinds)
    spec = decoder(
        keys, None, kinds=kinds, by_kind=per_kind(with_assumed(keys), kinds, d_head=widths), d_head=keys.whole("head_dim")
    )
    longrope_of_layers(keys, spec)
    return spec if widths[FULL] == widths[SLIDING] else replace(spec, d_head=None)


def _widths(keys: Keys, kinds: Sequence[str]) -> dict[str, int]:
    """Head widths by kind: head_dim, or per_layer_config's values for single layers; without it, 512 for full layers."""
    if keys.has("per_layer_config"):
        table = keys.table("per_layer_config")
        for number, inner in table.items():
            if not str(number).isdigit() or not isinstance(inner, Mapping):
                raise ConfigError(
                    f"{keys.where('per_layer_config')}.{number}: expected an object under a layer's number, got {inner!r}"
                )
        by_layer = {int(number): inner for number, inner in table.items()}
        each = [Keys(by_layer.get(n, {}), "").whole("head_dim", keys.whole("head_dim")) for n in range(len(kinds))]
    else:
        wide = keys.whole("global_head_dim", 512)
        each = [wide if kind == FULL else keys.whole("head_dim") for kind in kinds]
    widths = {FULL: keys.whole("head_dim"), SLIDING: keys.whole("head_dim")}
    for kind in widths:
        sizes = {width for width, layer_kind in zip(each, kinds, strict=True) if layer_kind == kind}
        if len(sizes) > 1:
            raise ConfigError(
                f"{keys.where('per_layer_config')}: head_dim is {sorted(sizes)} in {kind} layers, but "
                "one rotation serves all of a kind"
            )
        widths[kind] = next(iter(sizes), widths[kind])
    return widths


@family("gemma4", "gemma4_unified", "embedding_gemma2")
def gemma4(keys: Keys) -> PositionSpec:
    """Vision and audio encoders are optional."""
    towers = [name for name in ("vision_config", "audio_config") if keys.has(name)]
    return PositionSpec(keys.family, parts=parts(keys, "text_config", *towers), coordinates=LIKE_TEXT)


@family("gemma4_assistant", "gemma4_unified_assistant")
def gemma4_assistant(keys: Keys) -> PositionSpec:
    """A draft model: its layers rotate queries only and use the rotated keys of the main model."""
    keys.note(
        "text_config",
        say(
            "keys and values are the main model's and position_ids continue its sequence; the mask "
            "is bidirectional, since every key is earlier"
        ),
    )
    inner = keys.section("text_config")
    if not inner.whole("num_kv_shared_layers", 0, least=0):  # 0 here means all of them
        inner.data["num_kv_shared_layers"] = inner.whole("num_hidden_layers")
    keys.warning(
        "text_config.num_kv_shared_layers",
        say("transformers 5.23 cannot build this model: its check requires a layer that computes its own keys"),
    )
    return PositionSpec(keys.family, parts=(read_section(inner, "text_config"),), coordinates=LIKE_TEXT)
