"""LightGlue and EfficientLoFTR: RoPE over image coordinates in self-attention, none between the two images."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import even_head
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

CELLS = say(
    "(row, column) of the cell, from 1, row by row; cells are of the aggregated map, q_aggregation_stride "
    "features wide; queries and keys are rotated before they are split into heads, so d_head "
    "is the whole width here"
)


@family("lightglue")
def lightglue(keys: Keys) -> PositionSpec:
    """A learned matrix maps (x, y) to the angles of all pairs; all layers and heads share it."""
    d_head = even_head(keys, "descriptor_dim", multiple=2)
    use = Use(
        "encodings.of_families.projected_rope.ProjectedRoPE",
        (("d_head", d_head), ("axes", 2), ("layout", "interleaved")),
        (
            ("d_head", "descriptor_dim / num_attention_heads"),
            ("axes", "constant of the code"),
            ("layout", "constant of the code"),
        ),
        (Weight("projection", "positional_encoder.projector.weight"),),
    )
    both = [Layer((use,), "self_attention", causal=False), Layer((), "cross_attention", causal=False)]
    where = say("(x, y) of the key point minus half of (width, height), divided by half of the longer side: -1 … 1")
    return stack_of(
        keys,
        both * keys.whole("num_hidden_layers"),
        width="descriptor_dim",
        length=None,
        coordinates=where,
        parts=parts(keys, "keypoint_detector_config"),
    )


@family("efficientloftr")
def efficientloftr(keys: Keys) -> PositionSpec:
    """Interleaved pairs over all heads together, pairs alternately by row and column, counted from 1."""
    d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    settings = keys.table("rope_scaling") or keys.table("rope_parameters")
    factor = Keys(settings, "", keys.where("rope_parameters")).number(
        "partial_rotary_factor", keys.number("partial_rotary_factor", 4.0)
    )
    width = int(d_model // n_heads * factor)
    if (width + 1) // 2 * 2 != d_model // 2 or d_model % n_heads:
        raise ConfigError(
            f"{keys.where('rope_parameters')}.partial_rotary_factor: {factor} makes {(width + 1) // 2} "
            f"frequencies, and the code needs hidden_size/4 = {d_model / 4:g}"
        )
    settings = {
        name: {key: value for key, value in keys.table(name).items() if key != "partial_rotary_factor"}
        for name in ("rope_scaling", "rope_parameters")
        if keys.has(name)
    }
    keys = keys.replaced(settings, without=("partial_rotary_factor",))
    silent = not (keys.has("rope_parameters") or keys.has("rope_theta"))
    axes = (("axial", (("order", (0, 1)), ("alternating", True))),)
    use = rope(
        keys,
        d_head=d_model,
        rotary_dim=width,
        layout="interleaved",
        maps=axes,
        base=float(keys.facts["base"]) if silent and keys.facts["base"] else None,
    )
    if use is None or use.rotation is None or use.rotation.kind not in ("rotary", "linear", "llama3"):
        raise ConfigError(
            f"{keys.where('rope_parameters')}.rope_type: expected 'default', 'linear' or 'llama3'; the code "
            "reads frequencies only, neither a magnitude nor a length"
        )
    use = replace(use, said_by=(*use.said_by, ("rotary_dim", "rope_parameters.partial_rotary_factor")))
    both = [Layer((use,), "self_attention", causal=False), Layer((), "cross_attention", causal=False)]
    spec = stack_of(keys, both * keys.whole("num_attention_layers"), length=None, d_head=d_model, coordinates=CELLS)
    return replace(spec, n_heads=1)
