"""Models whose positions are those of a backbone: depth, pose, matting, tables. What they add are convolutions."""

from __future__ import annotations

from posenc.dialects.family import family, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use

INSIDE = "those of the backbone"


@family("chmv2", "depth_anything", "prompt_depth_anything", "pp_ocrv6_tiny_rec", "slanet", "upernet", "vitmatte", "vitpose")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "backbone_config"), coordinates=INSIDE)


@family("depth_pro")
def _(keys: Keys) -> PositionSpec:
    """Two encoders of patches cut from several scales, one for the image, one perhaps for the field of view."""
    names = ["image_model_config", "patch_model_config"] + ["fov_model_config"] * bool(keys.flag("use_fov_model", False))
    return PositionSpec(
        keys.family, parts=parts(keys, *names), coordinates="within each piece of patch_size pixels, on its own"
    )


@family("zoedepth")
def _(keys: Keys) -> PositionSpec:
    """With several ranges of depth, four layers more choose among them, by sinusoids of one long count."""
    inside = parts(keys, "backbone_config")
    ranges = keys.get("bin_configurations", [{}])
    if not isinstance(ranges, list) or len(ranges) < 2:
        return PositionSpec(keys.family, parts=inside, coordinates=INSIDE)
    width = "patch_transformer_hidden_size"
    arguments = (("d_model", keys.whole(width, 128)), ("layout", "sin_cos"))
    said = (("d_model", keys.said_by(width)), ("base", "constant of the code"), ("layout", "constant of the code"))
    use = Use("encodings.sinusoidal.Sinusoidal", arguments, said)
    count = keys.whole("num_patch_transformer_layers", 4)
    if count != 4:
        keys.find("warning", "num_patch_transformer_layers", f"{count} here; the code asks the first 4")
    where = "0 for an empty token, then the places of the coarsest map from 1, row by row"
    heads = "patch_transformer_num_attention_heads"
    chooser = stack_of(
        keys, [Layer(causal=False)] * 4, embedding=[use], width=width, heads=heads, length=None, coordinates=where
    )
    return PositionSpec(keys.family, parts=(*inside, chooser.with_part("patch_transformer")), coordinates=INSIDE)


@family("timm_backbone", "timm_wrapper")
def _(keys: Keys) -> PositionSpec:
    """A model of another library, by its name."""
    name = keys.text("backbone" if keys.family == "timm_backbone" else "architecture", "")
    keys.find(
        "warning",
        "backbone" if keys.family == "timm_backbone" else "architecture",
        f"{name or 'no name'}: a model of timm, whose code decides about positions; it is not read here",
    )
    return PositionSpec(keys.family, coordinates="not read: a model of timm")
