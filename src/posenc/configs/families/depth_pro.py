"""Depth Pro and ZoeDepth: depth estimators on vision backbones."""

from __future__ import annotations

from posenc.configs.coordinates import EACH_PART
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use


@family("depth_pro")
def depth_pro(keys: Keys) -> PositionSpec:
    """Two encoders of patches cut from several scales, one for the image, optionally one for the field of view."""
    names = ["image_model_config", "patch_model_config"] + ["fov_model_config"] * bool(keys.flag("use_fov_model", False))
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=say("within each crop of patch_size pixels"))


@family("zoedepth")
def zoedepth(keys: Keys) -> PositionSpec:
    """With several depth ranges, four more layers choose among them; they get sinusoids of the cell index."""
    inside = parts(keys, "backbone_config")
    ranges = keys.get("bin_configurations", [{}])
    if not isinstance(ranges, list) or len(ranges) < 2:
        return PositionSpec(keys.family, parts=inside, coordinates=EACH_PART)
    width = "patch_transformer_hidden_size"
    arguments = (("d_model", keys.whole(width, 128)), ("layout", "sin_cos"))
    said_by = (("d_model", keys.said_by(width)), ("base", "constant of the code"), ("layout", "constant of the code"))
    use = Use("encodings.sinusoidal.Sinusoidal", arguments, said_by)
    count = keys.whole("num_patch_transformer_layers", 4)
    if count != 4:
        keys.warning("num_patch_transformer_layers", say("{count} here; the code uses the first 4", count=count))
    where = say("0 for an empty token, then the cells of the coarsest map from 1, row by row")
    heads = "patch_transformer_num_attention_heads"
    chooser = stack_of(
        keys, [Layer(causal=False)] * 4, embedding=[use], width=width, heads=heads, length=None, coordinates=where
    )
    return PositionSpec(keys.family, parts=(*inside, chooser.with_part("patch_transformer")), coordinates=EACH_PART)
