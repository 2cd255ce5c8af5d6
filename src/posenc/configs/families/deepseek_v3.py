"""DeepSeek-V2 and V3: multi-head latent attention. One slice of each head rotates, [nope | rope]; all heads share its key.

The softmax scale is (qk_nope + qk_rope)^(-1/2), times mscale² if YaRN sets mscale_all_dim. The scale applies to the
unrotated slice too. DeepSeek-V2, sections 2.1.3 and 3.1.4, and its released code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, layer_kinds
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope, too_few
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Rotation, Use

HALVES = {"layout": "half"}
PAIRS = {"layout": "interleaved", "returns": "half"}


def latent(
    keys: Keys,
    *,
    interleave: bool | None = None,
    whole: bool = False,
    partial: bool = False,
    also_read: tuple[str, ...] = (),
    **options: Any,
) -> Use | None:
    """RoPE over the last qk_rope_head_dim channels.

    whole       as in Mistral 4: frequencies are computed for a fraction of the whole head, not for the rotated channels
    interleave  interleaved pairs in, half pairs out; None: as rope_interleave says. `options` go to RoPE instead, if given
    partial     whether plain frequencies are computed for partial_rotary_factor of these channels, as scaled ones are
    """
    rotary_dim, still = keys.whole("qk_rope_head_dim", least=2), keys.whole("qk_nope_head_dim")
    if rotary_dim % 2:
        raise ConfigError(f"{keys.where('qk_rope_head_dim')}: expected an even number of channels, got {rotary_dim}")
    if not options:
        pairs = keys.flag("rope_interleave") if interleave is None else interleave
        options = dict(PAIRS if pairs else HALVES)
    also = ("mscale_all_dim", *also_read)
    if whole:
        keys = without_fraction(keys, rotary_dim, still + rotary_dim)
        also += ("llama_4_scaling_beta", "max_position_embeddings")
    options |= {"partial": partial, "also_read": also, "trailing": True}
    use = rope(keys, d_head=still + rotary_dim, rotary_dim=rotary_dim, **options)
    if use is None:
        return None
    if whole:
        use = replace(use, fraction=rotary_dim / (still + rotary_dim))
    said_by = {"rotary_dim": keys.said_by("qk_rope_head_dim"), "layout": "constant of the code"}
    if interleave is None and "returns" in options:
        said_by["layout"] = keys.said_by("rope_interleave")
    return with_softmax_scale(keys, use.with_said_by(said_by))


def without_fraction(keys: Keys, rotary_dim: int, width: int, label: str | None = None) -> Keys:
    """The same keys without partial_rotary_factor in the rotary settings, which is checked here.

    Frequencies are computed for int(width · factor) channels; the model fails unless this equals rotary_dim.
    """
    result = keys
    for name in ("rope_scaling", "rope_parameters"):
        settings = keys.table(name) if keys.has(name) else {}
        inner = settings.get(label) if label else settings
        if not isinstance(inner, dict) or "partial_rotary_factor" not in inner:
            continue
        factor = Keys(inner, "", f"{keys.where(name)}.{label}" if label else keys.where(name)).number(
            "partial_rotary_factor"
        )
        if (int(width * factor) + 1) // 2 * 2 != rotary_dim:
            keys.error(f"{name}.partial_rotary_factor", too_few(factor, width, rotary_dim))
        rest = {key: value for key, value in inner.items() if key != "partial_rotary_factor"}
        result = result.replaced({name: settings | {label: rest} if label else rest})
    return result


def with_softmax_scale(keys: Keys, use: Use) -> Use:
    """Adds the softmax scale of mscale_all_dim.

    For YaRN, one of mscale and mscale_all_dim alone has no effect on cos and sin.
    """
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    rotation = use.rotation
    if rotation is None or rotation.kind == "rotary":
        return use
    parameters = dict(rotation.parameters)
    weight, factor = settings.get("mscale_all_dim"), settings.get("factor")
    if weight:
        Keys(settings, "", keys.where("rope_parameters")).number("mscale_all_dim")
    if weight and (rotation.kind in ("dynamic", "longrope") or factor is None):
        raise ConfigError(
            f"{keys.where('rope_parameters')}.mscale_all_dim: a softmax scale by factor={factor} with "
            f"{rotation.kind}, which depends on length, is not supported"
        )
    if rotation.kind == "yarn" and bool(weight) != bool(settings.get("mscale")):
        parameters = {name: value for name, value in parameters.items() if not name.startswith("mscale")}
        keys.warning(
            f"rope_parameters.{'mscale_all_dim' if weight else 'mscale'}",
            say(
                "mscale and mscale_all_dim affect cos and sin only together; here cos and sin are scaled "
                "by 1 + 0.1·ln factor{too}",
                too=say(", in addition to the softmax scale") if weight else "",
            ),
        )
    scale = (("softmax_mscale", (("factor", factor), ("mscale_all_dim", weight))),) if weight else ()
    unscaled = replace(rotation, parameters=tuple(sorted(parameters.items())), maps=(*rotation.maps, *scale))
    return with_rotation(use, unscaled)


def with_rotation(use: Use, rotation: Rotation) -> Use:
    """The same use with other frequencies."""
    arguments = tuple((name, rotation if isinstance(value, Rotation) else value) for name, value in use.arguments)
    return replace(use, arguments=arguments)


def stack(keys: Keys, use: Use | None, kinds: Sequence[str] | None = None, **about: Any) -> PositionSpec:
    """A decoder of latent attention; linear attention layers are recurrent and have no positions."""
    kinds = layer_kinds(keys) if kinds is None else kinds
    linear = sum(kind == "linear_attention" for kind in kinds)
    if use is not None and linear:
        keys.note(
            "layer_types",
            say("{linear} of {n_kinds} layers are linear attention, which is recurrent", linear=linear, n_kinds=len(kinds)),
        )
    d_head = keys.whole("qk_rope_head_dim", least=0) + keys.whole("qk_nope_head_dim")
    return decoder(keys, use, kinds=kinds, d_head=d_head, **about)


def wide_enough(keys: Keys, use: Use | None) -> int:
    """index_head_dim. Raises ConfigError if it is smaller than the rotated channels."""
    width = int(keys.whole("index_head_dim"))
    turning = use.rotation.width if use is not None and use.rotation is not None else 0
    if width < turning:
        raise ConfigError(f"{keys.where('index_head_dim')}: expected at least the {turning} rotated channels, got {width}")
    return width


@family("deepseek_v3", "youtu", "glm4_moe_lite", "axk1")
def deepseek_v3(keys: Keys) -> PositionSpec:
    """rope_interleave: interleaved pairs in, half pairs out; otherwise half pairs."""
    use = latent(keys, partial=keys.family == "glm4_moe_lite")
    return stack(keys, use, ["full_attention"] * keys.whole("num_hidden_layers"))


@family("sarvam_mla")
def sarvam_mla(keys: Keys) -> PositionSpec:
    """DeepSeek-V3's code. Published files call YaRN "deepseek_yarn"."""
    settings = keys.table("rope_scaling")
    if "deepseek_yarn" in (settings.get("type"), settings.get("rope_type")):
        rest = {key: value for key, value in settings.items() if key != "type"}
        keys = keys.replaced({"rope_scaling": rest | {"rope_type": "yarn"}})
    return deepseek_v3(keys)


@family("deepseek_v2")
def deepseek_v2(keys: Keys) -> PositionSpec:
    """Interleaved pairs in and out (complex numbers in its code)."""
    return stack(keys, latent(keys, layout="interleaved"), ["full_attention"] * keys.whole("num_hidden_layers"))


@family("minicpm3")
def minicpm3(keys: Keys) -> PositionSpec:
    return stack(keys, latent(keys, interleave=False), ["full_attention"] * keys.whole("num_hidden_layers"))


@family("longcat_flash")
def longcat_flash(keys: Keys) -> PositionSpec:
    """Two attentions per layer; rotated queries are scaled by (hidden_size/q_lora_rank)^½, rotated keys are not."""
    if keys.whole("head_dim") != keys.whole("qk_rope_head_dim"):
        keys.error(
            "head_dim",
            say("frequencies are computed for head_dim channels, but qk_rope_head_dim channels rotate: both must be equal"),
        )
    keys.note("num_layers", say("each layer has two attentions: layers 2n and 2n + 1 here are layer n of the model"))
    return stack(keys, latent(keys, interleave=True), ["full_attention"] * (2 * keys.whole("num_layers")))
