"""DINOv3 and similar: axial RoPE over patch coordinates from -1 to 1, whatever the size of the image."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.patches import Maps, even_head, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Rotation, Use

TURNS: Maps = (("in_turns", ()), ("axial", (("order", (0, 1)),)))

SQUARE = say(
    "centre (row, column) of the patch, from -1 to 1: 2·(i + ½)/n - 1; tokens before the patches are not rotated: (0, 0)"
)


@family("dinov3_vit", "sapiens2")
def dinov3_vit(keys: Keys) -> PositionSpec:
    """Angles are 2π · coordinate · base^(-4j/d); the base is the top-level rope_theta."""
    return _tower(keys, keys.number("rope_theta"), keys.said_by("rope_theta"))


@family("eomt_dinov3")
def eomt_dinov3(keys: Keys) -> PositionSpec:
    """The base is in rope_parameters, 100 by default. Mask queries are prepended before the last layers and not rotated."""
    inner = Keys(keys.table("rope_parameters"), "", keys.where("rope_parameters"))
    base, origin = inner.number("rope_theta", None), f"{keys.where('rope_parameters')}.rope_theta"
    if base is None:
        base = keys.number("rope_theta", None)
        origin = keys.said_by("rope_theta") if base is not None else f"default of {keys.facts['class']}"
    kind = inner.text("rope_type", "default")
    if kind != "default":
        keys.error("rope_parameters.rope_type", say("{kind!r}: the code supports 'default' only, and fails", kind=kind))
    return _tower(keys, float(keys.facts["base"]) if base is None else base, origin)


def _tower(keys: Keys, base: float, origin: str) -> PositionSpec:
    d_head = even_head(keys)
    if keys.number("pos_embed_rescale", None):
        keys.note("pos_embed_rescale", say("shifts, jitters and rescales coordinates in training only"))
    for name in ("pos_embed_shift", "pos_embed_jitter"):
        keys.number(name, None)
    keys.whole("num_register_tokens", 0, least=0)
    arguments = (("d_head", d_head), ("layout", "half"), ("frequencies", Rotation(d_head // 2, base, maps=TURNS)))
    use = Use("encodings.rope.RoPE", arguments, (("base", origin), ("layout", "constant of the code")))
    return tower(keys, [use], coordinates=SQUARE)
