"""Stages of growing patches: PVT with a table for each, DiNAT with a number for each place in a neighbourhood."""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("pvt")
def _(keys: Keys) -> PositionSpec:
    """A table before each stage; in the last the class token stands first."""
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
        said = (("d_model", keys.said_by("hidden_sizes")), ("height", "image_size / patch_sizes"), ("width", "the same"))
        weight = (Weight("table", f"patch_embeddings.{stage}.position_embeddings", reshape=True),)
        table = Use("encodings.learned_grid.LearnedGrid", tuple(arguments.items()), said, weight)
        layers += [Layer((table,) if n == 0 else (), f"stage {stage}", causal=False) for n in range(depth)]
    keys.find(
        "warning",
        "image_size",
        "images must have as many patches as this one: where they have another shape, the "
        "code reads the table row by row as if it had theirs, and interpolates nothing",
    )
    where = f"{RASTER} within its stage; in the last stage the class token first, at (-1, 0)"
    return stack_of(keys, layers, width="no one number", heads="no one number", length=None, coordinates=where)


@family("dinat")
def _(keys: Keys) -> PositionSpec:
    """Each place attends to kernel_size × kernel_size around it, every dilations-th, and adds a number by difference."""
    size, depths = keys.whole("kernel_size"), keys.wholes("depths")
    layers, heads = [], keys.wholes("num_heads", length=len(depths))
    for stage, depth in enumerate(depths):
        arguments = (("n_heads", heads[stage]), ("window", (size, size)))
        said = (("n_heads", keys.said_by("num_heads")), ("window", keys.said_by("kernel_size")))
        use = Use(
            "encodings.window_bias.WindowBias",
            arguments,
            said,
            note="stored [heads, rows, columns] by key - query, the other way round than here",
        )
        layers += [Layer((use,), "neighbourhood", causal=False)] * depth
    keys.find(
        "warning",
        "kernel_size",
        "which neighbours are seen, and which number each gets, is natten's, a library "
        "that is not read here: with dilations, differences count in steps",
    )
    where = RASTER + " within its stage; at borders the neighbourhood keeps its size and moves inwards"
    return stack_of(keys, layers, width="embed_dim", heads="no one number", length=None, coordinates=where)
