"""Llama 3.2 Vision: gated tile tables in the vision encoder, Llama's RoPE in the text model."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.families.llama import all_full
from posenc.configs.family import decoder, family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import square_side_of
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("mllama_vision_model")
def mllama_vision_model(keys: Keys) -> PositionSpec:
    """A tile vector before the class token is added, a patch-and-tile vector after it, a tile vector before the global
    layers;
    each is scaled by a learned gate."""
    ratios = keys.get("supported_aspect_ratios", [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]])
    if not isinstance(ratios, (list, tuple)):
        raise ConfigError(f"{keys.where('supported_aspect_ratios')}: expected a list of rows and columns, got {ratios!r}")
    n_ratios, n_tiles, d_model = len(ratios) + 1, keys.whole("max_num_tiles", 4), keys.whole("hidden_size")
    height, width, _ = square_side_of(keys)

    def tiles(name: str, n_patches: int | None = None) -> Use:
        said_by = (
            ("d_model", keys.said_by("hidden_size")),
            ("n_tiles", keys.said_by("max_num_tiles")),
            ("n_ratios", f"{keys.said_by('supported_aspect_ratios')}, and 0 for none"),
        )
        whole = n_patches is not None
        weights = [
            Weight("tiles", f"{name}.{'tile_' if whole else ''}embedding.weight", reshape=True),
            Weight("gate", f"{name}.gate"),
        ]
        weights += [Weight("patches", f"{name}.embedding")] if whole else []
        arguments = (("d_model", d_model), ("n_ratios", n_ratios), ("n_tiles", n_tiles), ("n_patches", n_patches))
        return Use("encodings.of_families.gated_tiles.GatedTiles", arguments, said_by, tuple(weights))

    first = (tiles("pre_tile_positional_embedding"), tiles("gated_positional_embedding", height * width + 1))
    local, count = keys.whole("num_hidden_layers"), keys.whole("num_global_layers")
    last = (tiles("post_tile_positional_embedding"),)
    layers = [Layer(first if n == 0 else (), "local", causal=False) for n in range(local)]
    layers += [Layer(last if n == 0 else (), "global", causal=False) for n in range(count)]
    keys.note(
        "max_num_tiles",
        say(
            "the first use of layer 0 is added before the class token is prepended, that of the first "
            "global layer before that layer"
        ),
    )
    where = say("(index of the aspect ratio, from 1, tile, patch in the tile: 0 the class token, then row by row from 1)")
    return stack_of(keys, layers, length=None, coordinates=where)


@family("mllama_text_model")
def mllama_text_model(keys: Keys) -> PositionSpec:
    """cross_attention_layers, which attend to the image, have no positions; without an image they are skipped."""
    count = keys.whole("num_hidden_layers")
    crossing = keys.numbers("cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38))
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    spec = decoder(keys, rope(keys, d_head=d_model // n_heads), kinds=all_full(keys), d_head=d_model // n_heads)
    to_image = Layer((), "cross_attention", causal=False)
    layers = tuple(to_image if n in crossing else layer for n, layer in enumerate(spec.layers))
    if any(n >= count for n in crossing):
        keys.warning(
            "cross_attention_layers", say("names layers beyond the last of {count}; these do not exist", count=count)
        )
    return replace(spec, layers=layers)
