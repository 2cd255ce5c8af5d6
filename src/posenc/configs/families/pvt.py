"""PVT: a learned table in each stage."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import WITHIN
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("pvt")
def pvt(keys: Keys) -> PositionSpec:
    """A table before each stage; in the last stage the class token comes first."""
    depths, widths, patches = (keys.wholes(name) for name in ("depths", "hidden_sizes", "patch_sizes"))
    if not len(depths) == len(widths) == len(patches):
        raise ConfigError(
            f"{keys.where('depths')}, hidden_sizes, patch_sizes: expected one number for each stage in all, "
            f"got {len(depths)}, {len(widths)} and {len(patches)}"
        )
    image, layers = keys.whole("image_size"), []
    for stage, (depth, width, patch) in enumerate(zip(depths, widths, patches, strict=True)):
        side = (image if stage == 0 else image // 2 ** (stage + 1)) // patch
        arguments = {"d_model": width, "height": side, "width": side}
        if stage == len(depths) - 1:
            arguments["prefix"] = 1
        said_by = (("d_model", keys.said_by("hidden_sizes")), ("height", "image_size / patch_sizes"), ("width", "the same"))
        weight = (Weight("table", f"patch_embeddings.{stage}.position_embeddings", reshape=True),)
        table = Use("encodings.bases.learned_grid.LearnedGrid", tuple(arguments.items()), said_by, weight)
        layers += [Layer((table,) if n == 0 else (), f"stage {stage}", causal=False) for n in range(depth)]
    keys.warning(
        "image_size",
        say(
            "images must have as many patches as this one: for another shape, the code reads the table "
            "row by row without interpolation"
        ),
    )
    where = clauses(WITHIN, say("in the last stage the class token first, at (-1, 0)"))
    return stack_of(keys, layers, width="no one number", heads="no one number", length=None, coordinates=where)
