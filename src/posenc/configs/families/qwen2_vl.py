"""Qwen2-VL, Qwen3-VL, GLM-4V, ERNIE 4.5 VL and similar: M-RoPE. Each pair of channels reads time, row or column.

Pairs are assigned in three ways: contiguous sections (Qwen2-VL, GLM-4V); time, row, column in turn, the rest to time
(Qwen3-VL); rows and columns in turn, the slowest pairs to time (ERNIE). With three equal coordinates, as for text, each
equals plain RoPE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from posenc.configs.assumed import unscaled_only, with_assumed
from posenc.configs.coordinates import VIDEO_CLIPS, VIDEO_SECONDS
from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width, parts, read_section
from posenc.configs.keys import Keys
from posenc.configs.rotary import is_nested, rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use
from posenc.support.languages import Words

COORDINATES = say(
    "(time, row, column): equal for text, increasing by one; an image or frame starts at the "
    "next position, and text continues after the larger of its height and width"
)

LAYOUT_NOTE = say("interleaved pairs, as in GLM-4; the sections are Qwen's, the order of the rows of q and k is not")

READ = ("mrope_section", "mrope_interleaved", "interleaved")

Maps = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]

Dealing = Callable[[Keys, str, tuple[int, ...], int], Maps]


def bands(keys: Keys, where: str, sizes: tuple[int, ...], pairs: int) -> Maps:
    """Contiguous sections: sizes[0] pairs of time, then sizes[1] of rows, then sizes[2] of columns."""
    if sum(sizes) != pairs:
        message = say(
            "{where}: expected sections that sum to {pairs} pairs, got {sizes}", where=where, pairs=pairs, sizes=list(sizes)
        )
        raise ConfigError(message)
    return (("sections", (("sizes", sizes),)),)


def interleaved(keys: Keys, where: str, sizes: tuple[int, ...], pairs: int) -> Maps:
    """t h w t h w …: rows get pairs 1, 4, … below 3·sizes[1], columns 2, 5, … below 3·sizes[2], time the rest."""
    rows, columns = (len(range(axis, min(3 * sizes[axis], pairs), 3)) for axis in (1, 2))
    dealt = (pairs - rows - columns, rows, columns)
    if not rows or not columns:
        raise ConfigError(f"{where}: {list(sizes)} leaves none of {pairs} pairs to rows or to columns")
    if dealt != sizes:
        keys.warning(
            "mrope_section",
            say(
                "{where} is {sizes}; of {pairs} pairs the code assigns {dealt}",
                where=where,
                sizes=list(sizes),
                pairs=pairs,
                dealt=list(dealt),
            ),
        )
    return (("interleaved_sections", (("sizes", dealt),)),)


def ernie(keys: Keys, where: str, sizes: tuple[int, ...], pairs: int) -> Maps:
    """h w h w …, the last sizes[2] pairs t; sections are in the order rows, columns, time."""
    if sizes[0] != sizes[1] or sum(sizes) != pairs:
        raise ConfigError(f"{where}: expected equal sections for rows and columns and a sum of {pairs}, got {list(sizes)}")
    return (("cycling", (("n", 2 * sizes[0]), ("order", (1, 2)), ("rest", 0))),)


def mrope(
    keys: Keys,
    deal: Dealing,
    default: tuple[int, int, int],
    *,
    knows_mrope: bool = False,
    label: str | None = None,
    labels: tuple[str, ...] = (),
    **options: Any,
) -> Use | None:
    """RoPE whose pairs are assigned to axes by `mrope_section`, or by `default`, a constant of the family's code.

    knows_mrope  whether the class reads rope_type "mrope" as "default"; others fail
    """
    use = rope(keys, d_head=head_width(keys), also_read=READ, label=label, labels=labels, **options)
    return dealt(keys, use, deal, default, knows_mrope=knows_mrope, label=label)


def dealt(
    keys: Keys,
    use: Use | None,
    deal: Dealing,
    default: tuple[int, int, int],
    *,
    knows_mrope: bool = False,
    label: str | None = None,
) -> Use | None:
    """The same rotation with its pairs assigned to axes, as in `mrope`."""
    if use is None or use.rotation is None:
        return None
    name = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    settings: Any = keys.table(name)
    where = keys.where(name)
    if label is not None and label in settings:
        settings, where = settings[label], f"{where}.{label}"
    inner = Keys(settings, "", where)
    sizes = inner.numbers("mrope_section", None, length=3)
    origin = f"{where}.mrope_section" if sizes is not None else "constant of the code"
    place = f"{where}.mrope_section" if sizes is not None else f"{where}.mrope_section (missing)"
    sizes = default if sizes is None else sizes
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ConfigError(f"{place}: expected three whole numbers from 1, got {list(sizes)}")
    _check_names(keys, settings, name, deal is not bands, knows_mrope)
    rotation = use.rotation
    rotation = replace(rotation, maps=(*rotation.maps, *deal(keys, place, sizes, (rotation.width + 1) // 2)))
    arguments = tuple((key, rotation if isinstance(value, Rotation) else value) for key, value in use.arguments)
    return replace(use, arguments=arguments, said_by=(*use.said_by, ("axes", origin)))


def _check_names(keys: Keys, settings: Mapping[str, Any], name: str, interleaved: bool, knows_mrope: bool) -> None:
    """Checks what the file says about the assignment of pairs, which is fixed in the code."""
    for key in ("mrope_interleaved", "interleaved"):
        if isinstance(settings.get(key), bool) and settings[key] != interleaved:
            keys.error(
                f"{name}.{key}", say("{settings}, but this family's code supports only the other", settings=settings[key])
            )
    fails = not knows_mrope and settings.get("rope_type", settings.get("type")) == "mrope"
    if fails:
        keys.error(
            f"{name}.rope_type", say("this family's code does not support 'mrope' and fails; 'default' means the same")
        )


@family("qwen2_vl_text", "qwen2_5_vl_text")
def qwen2_vl_text(keys: Keys) -> PositionSpec:
    return _qwen2_windows(keys, mrope(keys, bands, (16, 24, 24), knows_mrope=True))


@family("qwen2_5_omni_text", "qwen2_5_omni_talker")
def qwen2_5_omni_text(keys: Keys) -> PositionSpec:
    keys.whole("position_id_per_seconds", None)  # the talker numbers its tokens itself
    return _qwen2_windows(keys, mrope(keys, bands, (16, 24, 24)))


@family("paddleocr_vl_text")
def paddleocr_vl_text(keys: Keys) -> PositionSpec:
    return _full_layers(keys, mrope(keys, bands, (16, 24, 24)))


@family("glm4v_text", "glm_ocr_text")
def glm4v_text(keys: Keys) -> PositionSpec:
    """Interleaved pairs; without partial_rotary_factor the whole head rotates, unlike in GLM-4."""
    keys.note("rope_parameters", LAYOUT_NOTE)
    return _full_layers(keys, mrope(keys, bands, (8, 12, 12), layout="interleaved", partial=True))


@family("glm4v_moe_text")
def glm4v_moe_text(keys: Keys) -> PositionSpec:
    """Half pairs; half of the head rotates."""
    return _full_layers(keys, mrope(keys, bands, (8, 12, 12), partial=True, partial_default=0.5))


@family("glm_image_text")
def glm_image_text(keys: Keys) -> PositionSpec:
    """Half pairs; without partial_rotary_factor the whole head rotates, unlike in glm4v_moe."""
    return _full_layers(keys, mrope(keys, bands, (8, 12, 12), partial=True))


@family("qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_omni_moe_text", "qwen3_omni_moe_talker_text")
def qwen3_vl_text(keys: Keys) -> PositionSpec:
    if keys.has("sliding_window"):
        keys.note("sliding_window", say("all layers have full attention in the code"))
    return _full_layers(keys, mrope(keys, interleaved, (24, 20, 20)))


@family("cosmos3_edge_text")
def cosmos3_edge_text(keys: Keys) -> PositionSpec:
    """The class accepts the type "default" only, and needs sections that sum to half of head_dim."""
    keys = with_assumed(keys)
    for name in ("rope_parameters", "rope_scaling"):
        if keys.has(name) and "mrope_section" not in keys.table(name):
            keys.error(f"{name}.mrope_section", say("missing: the class requires it and fails"))
    return _full_layers(keys, unscaled_only(keys, mrope(keys, interleaved, (24, 20, 20))))


@family("qwen3_5_text", "qwen3_5_moe_text")
def qwen3_5_text(keys: Keys) -> PositionSpec:
    """A quarter of the head rotates; three of four layers are recurrent and have no positions."""
    return _among_linear(keys, mrope(keys, interleaved, (11, 11, 10), partial=True, partial_default=0.25), "full_attention")


@family("qwen4_exp_text")
def qwen4_exp_text(keys: Keys) -> PositionSpec:
    """Attention over tokens that an indexer selects; its queries and keys rotate by the same angles."""
    keys.note(
        "indexer_head_dim",
        say(
            "the indexer's queries rotate the first channels of its heads by the same angles; the "
            "selection of tokens is not compared"
        ),
    )
    return _among_linear(keys, mrope(keys, interleaved, (11, 11, 10), partial=True), "indexed_attention")


@family("cohere_compass_text")
def cohere_compass_text(keys: Keys) -> PositionSpec:
    """Rotary settings for each kind of layer, null for a kind without positions."""
    count = keys.whole("num_hidden_layers")
    kinds = keys.names("layer_types", ("full_attention",) * count, length=count)
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    if keys.whole("head_dim", d_model // n_heads) != d_model // n_heads:
        keys.error("head_dim", say("the class overwrites it with hidden_size / num_attention_heads"))
    labels = tuple(dict.fromkeys(kinds))
    if not is_nested(keys, labels):
        keys.error("rope_parameters", say("the code requires an entry for each kind of layer, and fails without"))
    by_kind = {kind: mrope(keys, interleaved, (24, 20, 20), label=kind, labels=labels) for kind in labels}
    return decoder(keys, None, kinds=kinds, by_kind=by_kind, d_head=d_model // n_heads, coordinates=COORDINATES)


@family("ernie4_5_vl_moe_text")
def ernie4_5_vl_moe_text(keys: Keys) -> PositionSpec:
    """Interleaved pairs; rows and columns have the fast pairs, time the slowest. Only "default" is supported."""
    keys.note(
        "rope_parameters", say("mrope_section is in the order rows, columns, time; positions are (time, row, column)")
    )
    return _full_layers(keys, unscaled_only(keys, mrope(keys, ernie, (22, 22, 20), layout="interleaved")))


def _full_layers(keys: Keys, use: Use | None) -> PositionSpec:
    kinds = ["full_attention"] * keys.whole("num_hidden_layers")
    return decoder(keys, use, kinds=kinds, coordinates=COORDINATES)


def _qwen2_windows(keys: Keys, use: Use | None) -> PositionSpec:
    """Qwen2's windows: if use_sliding_window is true, from layer max_window_layers on, unless layer_types is set."""
    count = keys.whole("num_hidden_layers")
    window = keys.whole("sliding_window", None) if keys.flag("use_sliding_window", False) else None
    first = keys.whole("max_window_layers", least=0)
    assumed = tuple("sliding_attention" if window and n >= first else "full_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    spec = decoder(keys, use, kinds=["full_attention"] * count, coordinates=COORDINATES)
    uses = (use,) if use else ()
    layers = tuple(Layer(uses, kind, window if kind == "sliding_attention" else None) for kind in kinds)
    return replace(spec, layers=layers)


def _among_linear(keys: Keys, use: Use | None, attention: str) -> PositionSpec:
    """Every fourth layer is attention (full_attention_interval) unless layer_types is set; the others have no uses."""
    count, every = keys.whole("num_hidden_layers"), keys.whole("full_attention_interval", 4)
    assumed = tuple("full_attention" if not (n + 1) % every else "linear_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    keys.note("layer_types", say("recurrent layers (gated delta rule) have no positions: order comes from the recurrence"))
    spec = decoder(keys, None, kinds=["full_attention"] * count, coordinates=COORDINATES)
    turning = Layer((use,) if use else (), attention)
    layers = tuple(Layer((), kind) if kind == "linear_attention" else turning for kind in kinds)
    return replace(spec, layers=layers)


@family("qwen2_vl")
def qwen2_vl(keys: Keys) -> PositionSpec:
    return _with_flat_text(keys, VIDEO_CLIPS)


@family("paddleocr_vl")
def paddleocr_vl(keys: Keys) -> PositionSpec:
    return _with_flat_text(keys, VIDEO_CLIPS)


@family("qwen2_5_vl")
def qwen2_5_vl(keys: Keys) -> PositionSpec:
    return _with_flat_text(keys, VIDEO_SECONDS)


def with_section_type(keys: Keys, section: str, model_type: str) -> Keys:
    """The same keys with another model_type in one section."""
    if not keys.has(section):
        return keys
    return keys.replaced({section: {**keys.table(section), "model_type": model_type}})


def text_is_flat(config: Mapping[str, Any]) -> bool:
    """Whether a file has the text model's keys beside vision_config, as published ones, not in a section of their own."""
    return config.get("model_type") in ("qwen2_vl", "qwen2_5_vl", "paddleocr_vl") and "text_config" not in config


def _with_flat_text(keys: Keys, coordinates: Words) -> PositionSpec:
    vision = parts(keys, "vision_config")
    if not text_is_flat(keys.data):
        return PositionSpec(keys.family, parts=(*parts(keys, "text_config"), *vision), coordinates=coordinates)
    flat: dict[str, Any] = {key: value for key, value in keys.data.items() if key != "vision_config"}
    keys.read |= dict.fromkeys(flat)
    text = read_section(Keys(flat, f"{keys.family}_text", keys.path, defaults=keys.base_may_be_default), "text_config")
    return PositionSpec(keys.family, parts=(text, *vision), coordinates=coordinates)
