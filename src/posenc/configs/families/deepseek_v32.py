"""DeepSeek-V3.2 and similar: latent attention over keys that an indexer selects; the indexer has its own rotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.configs.families.deepseek_v3 import HALVES, PAIRS, latent, stack, wide_enough
from posenc.configs.families.qwen2_vl import COORDINATES, dealt, interleaved
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use


def indexer(
    keys: Keys, use: Use | None, layers: Sequence[int], layout: Mapping[str, str], *, trailing: bool
) -> PositionSpec:
    """The indexer that selects keys for sparse attention: index_head_dim channels, rotated with the same frequencies.

    layers   those with an indexer; the others use the selection of the layer before
    layout   PAIRS, HALVES or other layouts of pairs in and out
    """
    width = wide_enough(keys, use)
    rotation = use.rotation if use else None
    uses: tuple[Use, ...] = ()
    if rotation is not None:
        plain = replace(rotation, maps=tuple(step for step in rotation.maps if step[0] != "softmax_mscale"))
        said_by = (("d_head", keys.said_by("index_head_dim")), ("layout", "constant of the code"))
        arguments = (("d_head", width), *layout.items(), ("frequencies", plain), ("trailing", trailing))
        uses = (Use("encodings.rope.RoPE", arguments, said_by),)
    stack = [
        Layer(uses if number in layers else (), "indexer" if number in layers else "shared_indexer")
        for number in range(keys.whole("num_hidden_layers"))
    ]
    return PositionSpec(keys.family, part="indexer", layers=tuple(stack), d_head=width, n_heads=keys.whole("index_n_heads"))


def indexer_types(keys: Keys, count: int) -> list[str]:
    """For each layer "full" if it has an indexer, "shared" if it uses the selection of the layer before."""
    types = keys.names("indexer_types", None, length=count)
    if types is not None:
        return list(types)
    pattern = keys.get("index_topk_pattern", None)
    every, offset = max(keys.whole("index_topk_freq", 1, least=0), 1), keys.whole("index_skip_topk_offset", 2, least=0)
    if pattern is not None:
        return [{"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern]
    return ["shared" if max(n - offset + 1, 0) % every else "full" for n in range(count)]


@family("deepseek_v32", "axk2")
def deepseek_v32(keys: Keys) -> PositionSpec:
    """Sparse attention. The indexer rotates its first channels in half pairs, attention its last in interleaved pairs."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    use = latent(keys, interleave=True)
    keys.note(
        "index_head_dim",
        say(
            "the indexer rotates its first channels in half pairs; attention rotates its last channels in interleaved pairs"
        ),
    )
    return stack(keys, use, kinds, parts=(indexer(keys, use, range(count), HALVES, trailing=False),))


@family("glm_moe_dsa")
def glm_moe_dsa(keys: Keys) -> PositionSpec:
    """As DeepSeek-V3.2, but the indexer uses interleaved pairs too, and some layers share the selection of the layer
    before."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    types = indexer_types(keys, count)
    use = latent(keys, interleave=True)
    keys.note(
        "index_head_dim", say("the indexer rotates its first channels, attention its last; both in interleaved pairs")
    )
    indexed = [n for n, kind in enumerate(types) if kind != "shared"]
    return stack(keys, use, kinds, parts=(indexer(keys, use, indexed, PAIRS, trailing=False),))


@family("hy_v4")
def hy_v4(keys: Keys) -> PositionSpec:
    """Half pairs in attention and in the indexer, both over the last channels; four layers share one indexer."""
    return _four_share(keys, latent(keys, interleave=False), HALVES)


@family("hy_v4_vl_text")
def hy_v4_vl_text(keys: Keys) -> PositionSpec:
    """As HY 4 but for the pairs, which are interleaved, and read time, row and column in turn, as Qwen3-VL's."""
    use = latent(keys, also_read=("mrope_section",), layout="interleaved")
    use = dealt(keys, use, interleaved, (12, 10, 10))
    return _four_share(keys, use, {"layout": "interleaved"}, coordinates=COORDINATES)


def _four_share(keys: Keys, use: Use | None, layout: Mapping[str, str], **about: Any) -> PositionSpec:
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    types = keys.names("indexer_types", None, length=count)
    types = types or ["full" if n == 0 or (n - 1) % 4 == 0 else "shared" for n in range(count)]
    indexed = [n for n, kind in enumerate(types) if kind != "shared"]
    return stack(keys, use, kinds, parts=(indexer(keys, use, indexed, layout, trailing=True),), **about)
