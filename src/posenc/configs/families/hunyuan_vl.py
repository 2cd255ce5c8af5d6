"""HunYuan-VL: XD-RoPE in the text model, which assigns channels instead of pairs to axes; a learned grid for images."""

from __future__ import annotations

from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width, parts, stack_of
from posenc.configs.keys import Keys, facts
from posenc.configs.patches import grid
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use


@family("hunyuan_vl_text")
def hunyuan_vl_text(keys: Keys) -> PositionSpec:
    """A rotation for text, where all axes are equal. For images the two channels of a pair rotate by different axes."""
    d_head = head_width(keys)
    name = "rope_scaling" if keys.table("rope_scaling") else "rope_parameters"
    settings = keys.table(name)
    sections = settings.get("mrope_section", settings.get("xdrope_section"))
    if not isinstance(sections, (list, tuple)) or not all(type(size) is int and size > 0 for size in sections):
        raise ConfigError(
            f"{keys.where(name)}.mrope_section: expected the number of pairs of each axis, got {sections}; "
            "the code fails without"
        )
    if sum(sections) != d_head // 2:
        raise ConfigError(f"{keys.where(name)}.mrope_section: expected {d_head // 2} pairs in all, got {list(sections)}")
    also = ("mrope_section", "xdrope_section", "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "factor")
    use = rope(keys, d_head=d_head, also_read=also)
    assert use is not None
    rotation = use.rotation
    if rotation is None or rotation.kind in ("dynamic", "longrope"):
        raise ConfigError(
            f"{keys.where(name)}.rope_type: posenc knows no XD-RoPE that depends on length; dynamic with an alpha does not"
        )
    if rotation.kind == "ntk_alpha" and keys.whole("head_dim", None) is None:
        keys.error("head_dim", say("missing: the code needs it if alpha is given, and fails"))
    keys.warning(
        f"{name}.mrope_section",
        say(
            "sections count channels, not pairs: the two channels of a pair rotate by different axes, "
            "which is not a rotation for images. Reproduced, since the weights were trained with it"
        ),
    )
    keys.note(f"{name}.mrope_section", say("queries and keys are normalised after the rotation"))
    sizes = tuple(int(size) for size in sections)
    quirk = Use(
        "configs.quirks.xd",
        (("d_head", d_head), ("f", rotation), ("sizes", sizes), ("layout", "half")),
        (*use.said_by, ("sizes", f"{keys.where(name)}.mrope_section")),
        note=say("as it was trained"),
    )
    where = say("one number per axis: width, height and time of an image; for text all are 0, 1, 2, …")
    return decoder(
        keys, quirk, kinds=["full_attention"] * keys.whole("num_hidden_layers"), d_head=d_head, coordinates=where
    )


@family("hunyuan_vl_vision")
def hunyuan_vl_vision(keys: Keys) -> PositionSpec:
    """A learned grid, no rotation; the table's first row is for a class token that does not exist."""
    return _gridded(keys)


@family("hy_v4_vl_vision")
def hy_v4_vl_vision(keys: Keys) -> PositionSpec:
    """As HunYuan-VL's; the grid is read as for a tenth of a patch more than the image has."""
    return _gridded(keys, surplus=0.1)


def _gridded(keys: Keys, **options: Any) -> PositionSpec:
    side = keys.whole("max_image_size") // keys.whole("patch_size")
    mode = keys.text("interpolate_mode", "bilinear", among=("bilinear", "bicubic", "nearest"))
    table = grid(
        keys,
        "position_embedding.weight",
        side,
        side,
        f"{keys.said_by('max_image_size')} / patch_size",
        mode=mode,
        prefix=1,
        **options,
    )
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(
        keys,
        layers,
        embedding=[table],
        length=None,
        d_head=keys.whole("head_dim", None),
        coordinates=say("(row, column, height, width) of the patch and its image, from 0, row by row"),
    )


@family("hy_v4_vl")
def hy_v4_vl(keys: Keys) -> PositionSpec:
    """Images and frames are blocks of rows that each end with one more token."""
    where = say(
        "text: (time, row, column) are equal and increase by one per token; an image or frame of H × W merged patches "
        "starts at the next position, its rows and columns counted from there, each row with one token more at its "
        "end; what follows starts after the larger of H and W + 1"
    )
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=where)


@family("hunyuan_vl")
def hunyuan_vl(keys: Keys) -> PositionSpec:
    """Old files have the text model's keys beside vision_config."""
    if not keys.has("text_config") and keys.has("num_hidden_layers"):
        known = {
            *facts()["hunyuan_vl_text"]["defaults"],
            *facts()["hunyuan_vl_text"]["names"],
            "rope_scaling",
            "rope_theta",
        }
        moved = {name: value for name, value in keys.data.items() if name in known}
        keys.note("text_config", say("not in the file: the class takes the top-level keys for it"))
        for name in moved:
            keys.get(name, None)
        keys = keys.replaced({"text_config": moved | {"model_type": "hunyuan_vl_text"}})
    where = say(
        "0, 1, 2, … over all tokens, the same on every axis; for image patches the last three "
        "axes are (column, row, image index), each from 0"
    )
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=where)
