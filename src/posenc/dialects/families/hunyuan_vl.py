"""HunYuan-VL's text model: XD-RoPE, which deals channels out to axes where it should deal out pairs."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import decoder, family, head_width
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec, Use


@family("hunyuan_vl_text")
def _(keys: Keys) -> PositionSpec:
    """A rotation for text, whose axes are equal; for images partners turn by different axes. Normalised afterwards."""
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
        keys.find("error", "head_dim", "missing: the code asks for it where alpha is given, and fails")
    keys.find(
        "warning",
        f"{name}.mrope_section",
        "bands are of channels, not of pairs: partners turn by different axes, "
        "and what images get is no rotation. Kept as the weights were trained with it",
    )
    keys.find("note", f"{name}.mrope_section", "queries and keys are normalised after the rotation")
    sizes = tuple(int(size) for size in sections)
    quirk = Use(
        "dialects.quirks.xd",
        (("d_head", d_head), ("f", rotation), ("sizes", sizes), ("layout", "half")),
        (*use.said_by, ("sizes", f"{keys.where(name)}.mrope_section")),
        note="as it was trained",
    )
    where = "one number for each axis: width, height and time of an image; text counts 0, 1, 2, … with all of them the same"
    return decoder(
        keys, quirk, kinds=["full_attention"] * keys.whole("num_hidden_layers"), d_head=d_head, coordinates=where
    )
