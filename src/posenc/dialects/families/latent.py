"""Multi-head latent attention: one slice of each head turns, [nope | rope], keys of all heads share theirs.

The softmax scale is (qk_nope + qk_rope)^(-1/2), times mscale² where yarn says mscale_all_dim; that sharpens the slice that
does not turn as well. DeepSeek-V2, sections 2.1.3 and 3.1.4, and its released code.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from posenc.dialects.assumed import with_assumed
from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, layer_kinds
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import Layer, PositionSpec, Rotation, Use


def latent(keys: Keys, *, interleave: bool | None = None, whole: bool = False, **options: Any) -> Use | None:
    """The rotation of the trailing qk_rope_head_dim channels.

    whole       as Mistral 4: frequencies are made for a fraction of the whole head, not for the channels that turn
    interleave  neighbours in, halves out; None: as rope_interleave says. `options` go to RoPE instead, if given
    """
    rotary_dim, still = keys.whole("qk_rope_head_dim", least=2), keys.whole("qk_nope_head_dim")
    if rotary_dim % 2:
        raise ConfigError(f"{keys.where('qk_rope_head_dim')}: expected an even number of channels, got {rotary_dim}")
    if not options:
        pairs = keys.flag("rope_interleave") if interleave is None else interleave
        options = {"layout": "interleaved", "returns": "half"} if pairs else {"layout": "half"}
    also: tuple[str, ...] = ("mscale_all_dim",)
    if whole:
        keys = without_fraction(keys, rotary_dim, still + rotary_dim)
        also += ("llama_4_scaling_beta", "max_position_embeddings")
    use = rope(keys, d_head=still + rotary_dim, rotary_dim=rotary_dim, trailing=True, also_read=also, **options)
    if use is None:
        return None
    said = {"rotary_dim": keys.said_by("qk_rope_head_dim"), "layout": "constant of the code"}
    if interleave is None and "returns" in options:
        said["layout"] = keys.said_by("rope_interleave")
    return sharpened(keys, replace(use, said_by=tuple((dict(use.said_by) | said).items())))


def without_fraction(keys: Keys, rotary_dim: int, width: int, label: str | None = None) -> Keys:
    """The same keys without the partial_rotary_factor of their rotary settings, which is looked at here: frequencies are
    made for int(width · factor) channels, and the model fails where these are not the rotary_dim that turn."""
    made = copy(keys)
    made.data = dict(keys.data)
    for name in ("rope_scaling", "rope_parameters"):
        settings = keys.table(name) if keys.has(name) else {}
        inner = settings.get(label) if label else settings
        if not isinstance(inner, dict) or "partial_rotary_factor" not in inner:
            continue
        factor = Keys(inner, "", f"{keys.where(name)}.{label}" if label else keys.where(name)).number(
            "partial_rotary_factor"
        )
        if (int(width * factor) + 1) // 2 * 2 != rotary_dim:
            keys.find(
                "error",
                f"{name}.partial_rotary_factor",
                f"{factor:g} of {width} makes frequencies for "
                f"{int(width * factor)} channels, {rotary_dim} turn: the model fails",
            )
        rest = {key: value for key, value in inner.items() if key != "partial_rotary_factor"}
        made.data[name] = settings | {label: rest} if label else rest
    return made


def sharpened(keys: Keys, use: Use) -> Use:
    """The softmax scale of mscale_all_dim, with any scaling; of yarn's mscales one alone is nothing to cos and sin."""
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    rotation = use.rotation
    if rotation is None or rotation.kind == "rotary":
        return use
    given = dict(rotation.parameters)
    weight, factor = settings.get("mscale_all_dim"), settings.get("factor")
    if weight:
        Keys(settings, "", keys.where("rope_parameters")).number("mscale_all_dim")
    if weight and (rotation.kind in ("dynamic", "longrope") or factor is None):
        raise ConfigError(
            f"{keys.where('rope_parameters')}.mscale_all_dim: a softmax scale by factor={factor} beside "
            f"{rotation.kind}, which depends on length: not one that posenc builds"
        )
    if rotation.kind == "yarn" and bool(weight) != bool(settings.get("mscale")):
        given = {name: value for name, value in given.items() if not name.startswith("mscale")}
        keys.find(
            "warning",
            "rope_parameters.mscale",
            "mscale and mscale_all_dim count in cos and sin only together; here "
            "cos and sin get 1 + 0.1·ln factor" + (", beside the softmax scale" if weight else ""),
        )
    scale = (("softmax_mscale", (("factor", factor), ("mscale_all_dim", weight))),) if weight else ()
    made = replace(rotation, parameters=tuple(sorted(given.items())), maps=(*rotation.maps, *scale))
    return with_rotation(use, made)


def with_rotation(use: Use, made: Rotation) -> Use:
    """The same use with other frequencies."""
    arguments = tuple((name, made if isinstance(value, Rotation) else value) for name, value in use.arguments)
    return replace(use, arguments=arguments)


def stack(keys: Keys, use: Use | None, kinds: Sequence[str] | None = None, **about: Any) -> PositionSpec:
    """A decoder of latent attention; layers of linear attention are recurrent and not listed."""
    attending = [kind for kind in (layer_kinds(keys) if kinds is None else kinds) if kind != "linear_attention"]
    if use is not None and len(attending) < len(kinds or attending):
        keys.find("note", "layer_types", f"{len(attending)} layers attend and are listed; the others are recurrent")
    d_head = keys.whole("qk_rope_head_dim", least=0) + keys.whole("qk_nope_head_dim")
    return decoder(keys, use, kinds=attending, d_head=d_head, **about)


def indexer(keys: Keys, use: Use | None, layers: Sequence[int], *, pairs: bool, trailing: bool) -> PositionSpec:
    """The indexer that picks keys for sparse attention: index_head_dim channels, turning at the same frequencies.

    layers   those that have one of their own; others take over the choice of the layer before
    pairs    neighbours in and halves out, else halves
    """
    width = wide_enough(keys, use)
    options = {"layout": "interleaved", "returns": "half"} if pairs else {"layout": "half"}
    rotation = use.rotation if use else None
    uses: tuple[Use, ...] = ()
    if rotation is not None:
        plain = replace(rotation, maps=tuple(made for made in rotation.maps if made[0] != "softmax_mscale"))
        said = (("d_head", keys.said_by("index_head_dim")), ("layout", "constant of the code"))
        arguments = (("d_head", width), *options.items(), ("frequencies", plain), ("trailing", trailing))
        uses = (Use("encodings.rope.RoPE", arguments, said),)
    made = [
        Layer(uses if number in layers else (), "indexer" if number in layers else "shared_indexer")
        for number in range(keys.whole("num_hidden_layers"))
    ]
    return PositionSpec(keys.family, part="indexer", layers=tuple(made), d_head=width, n_heads=keys.whole("index_n_heads"))


def wide_enough(keys: Keys, use: Use | None) -> int:
    """index_head_dim. Raises ConfigError where fewer channels than turn."""
    width = int(keys.whole("index_head_dim"))
    turning = use.rotation.width if use is not None and use.rotation is not None else 0
    if width < turning:
        raise ConfigError(
            f"{keys.where('index_head_dim')}: expected at least the {turning} channels that turn, got {width}"
        )
    return width


def indexer_types(keys: Keys, count: int) -> list[str]:
    """For each layer "full" where it has an indexer, "shared" where it takes over the choice of the layer before."""
    said = keys.names("indexer_types", None, length=count)
    if said is not None:
        return list(said)
    pattern = keys.get("index_topk_pattern", None)
    every, offset = max(keys.whole("index_topk_freq", 1, least=0), 1), keys.whole("index_skip_topk_offset", 2, least=0)
    if pattern is not None:
        return [{"F": "full", "S": "shared"}.get(letter, letter) for letter in pattern]
    return ["shared" if max(n - offset + 1, 0) % every else "full" for n in range(count)]


@family("deepseek_v3", "youtu", "glm4_moe_lite", "axk1")
def _(keys: Keys) -> PositionSpec:
    """rope_interleave: neighbours in, halves out; else halves."""
    return stack(keys, latent(keys), ["full_attention"] * keys.whole("num_hidden_layers"))


@family("deepseek_v2")
def _(keys: Keys) -> PositionSpec:
    """Complex numbers: neighbours in and out."""
    return stack(keys, latent(keys, layout="interleaved"), ["full_attention"] * keys.whole("num_hidden_layers"))


@family("minicpm3")
def _(keys: Keys) -> PositionSpec:
    return stack(keys, latent(keys, interleave=False), ["full_attention"] * keys.whole("num_hidden_layers"))


@family("longcat_flash")
def _(keys: Keys) -> PositionSpec:
    """Two attentions in each layer; rotated queries are scaled by (hidden_size/q_lora_rank)^½, rotated keys are not."""
    if keys.whole("head_dim") != keys.whole("qk_rope_head_dim"):
        keys.find(
            "error",
            "head_dim",
            "frequencies are made for head_dim channels, qk_rope_head_dim of them turn: both must be the same",
        )
    keys.find("note", "num_layers", "each layer has two attentions: layers 2n and 2n + 1 here are those of their layer n")
    return stack(keys, latent(keys, interleave=True), ["full_attention"] * (2 * keys.whole("num_layers")))


@family("bailing_hybrid")
def _(keys: Keys) -> PositionSpec:
    """Every layer_group_size-th layer is full attention, the others linear without positions."""
    count, every = keys.whole("num_hidden_layers"), keys.whole("layer_group_size", 6)
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        kinds = ["linear_attention" if (n + 1) % every else "full_attention" for n in range(count)]
    return stack(keys, latent(keys, interleave=True), kinds)


@family("deepseek_v32", "axk2")
def _(keys: Keys) -> PositionSpec:
    """Sparse by an indexer whose first channels turn in halves, while attention pairs neighbours."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    use = latent(keys, interleave=True)
    keys.find(
        "note",
        "index_head_dim",
        "the indexer pairs halves and turns its first channels; attention pairs neighbours and turns its last",
    )
    return stack(keys, use, kinds, parts=(indexer(keys, use, range(count), pairs=False, trailing=False),))


@family("glm_moe_dsa")
def _(keys: Keys) -> PositionSpec:
    """As DeepSeek-V3.2, but the indexer pairs neighbours too, and some layers share the one of the layer before."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    types = indexer_types(keys, count)
    use = latent(keys, interleave=True)
    keys.find("note", "index_head_dim", "the indexer turns its first channels, attention its last; both pair neighbours")
    own = [n for n, kind in enumerate(types) if kind != "shared"]
    return stack(keys, use, kinds, parts=(indexer(keys, use, own, pairs=True, trailing=False),))


@family("hy_v4")
def _(keys: Keys) -> PositionSpec:
    """Halves in attention and in the indexer, both trailing; four layers share one indexer."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count) or ["indexed_attention"] * count
    types = keys.names("indexer_types", None, length=count)
    types = types or ["full" if n == 0 or (n - 1) % 4 == 0 else "shared" for n in range(count)]
    use = latent(keys, interleave=False)
    own = [n for n, kind in enumerate(types) if kind != "shared"]
    return stack(keys, use, kinds, parts=(indexer(keys, use, own, pairs=False, trailing=True),))


@family("kimi_linear")
def _(keys: Keys) -> PositionSpec:
    """No rotation anywhere: order comes from the linear layers; qk_rope_head_dim channels are ordinary ones."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", None, length=count)
    if kinds is None:
        lists = keys.table("linear_attn_config")
        full, linear = lists.get("full_attn_layers"), lists.get("kda_layers")
        if full is not None and linear is not None:
            kinds = ["full_attention" if n + 1 in full else "linear_attention" for n in range(count)]
        else:
            kinds = ["full_attention" if n and n % 4 == 0 else "linear_attention" for n in range(count)]
    keys.find("note", "qk_rope_head_dim", "despite the name these channels do not turn: the code has no rotation")
    return stack(keys, None, kinds, coordinates="none: order comes from the causal linear attention layers")


@family("mistral4")
def _(keys: Keys) -> PositionSpec:
    """Interleaved slice, and queries that grow with position: 1 + β·ln(1 + ⌊p/original length⌋)."""
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
            f"{keys.where('rope_parameters')}: the code multiplies queries by llama_4_scaling_beta and "
            f"original_max_position_embeddings and needs both, got {scale!r} and {length!r}"
        )
    where = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    said_by = (
        ("scale", f"{where}.llama_4_scaling_beta"),
        ("length", f"{where}.original_max_position_embeddings"),
        ("offset", "constant of the code"),
    )
    growing = Use(
        "encodings.temperature.FloorLogTemperature", (("scale", scale), ("length", length), ("offset", 0)), said_by
    )
    spec = stack(keys, use, ["full_attention"] * keys.whole("num_hidden_layers"))
    return replace(spec, layers=tuple(replace(layer, uses=(*layer.uses, growing)) for layer in spec.layers))
