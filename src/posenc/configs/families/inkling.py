"""Inkling: a bias from learned profiles of distance that each token mixes. Queries and keys are not rotated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.llama4_vision import COLUMNS_ROWS
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import axial, even_head, grid, tower
from posenc.configs.say import say
from posenc.configs.schedule import schedule
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

FULL, SLIDING = "hybrid", "hybrid_sliding"
NAMES = {"project": "r_proj.weight", "bank": "rel_logits_proj.proj", "mixing": "rel_l2_clip.scale"}
LATER = {
    "project": "relative_position_bias.linear.weight",
    "bank": "relative_position_bias.proj",
    "mixing": "relative_position_bias.norm.scale",
}


@family("inkling_text")
def inkling_text(keys: Keys) -> PositionSpec:
    """Full layers may scale queries and bias by the number of tokens; local_layer_ids are the sliding layers."""
    local = keys.numbers("local_layer_ids", None)
    kinds = schedule(
        keys, lambda n: SLIDING if (n in local if local is not None else (n + 1) % 6) else FULL, (FULL, SLIDING)
    )
    keys.note("log_scaling_n_floor", say("distances and temperature count cached tokens, not position_ids"))
    return _stack(keys, kinds, {name: NAMES[name] for name in ("project", "bank")}, squared=True)


@family("inkling2_loop_text")
def inkling2_loop_text(keys: Keys) -> PositionSpec:
    """As Inkling 2; the layers in the middle run several times."""
    names = {"core_start": "loop_layer_index_start", "core_end": "loop_layer_index_end", "num_passes": "loop_num_passes"}
    inside = keys.table("loop_config")
    keys = keys.replaced({ours: inside[theirs] for theirs, ours in names.items() if theirs in inside})
    keys.note(
        "loop_config" if inside else "loop_num_passes",
        say(
            "layers {first} to {last} run {loops} times, each time with the same positions",
            first=keys.whole("loop_layer_index_start"),
            last=keys.whole("loop_layer_index_end") - 1,
            loops=keys.whole("loop_num_passes"),
        ),
    )
    return _limited(keys, LATER)


@family("inkling2_text")
def inkling2_text(keys: Keys) -> PositionSpec:
    """Full layers always scale queries; the norm of each token's mixing vector is limited."""
    return _limited(keys, NAMES)


def _limited(keys: Keys, names: Mapping[str, str]) -> PositionSpec:
    kinds = schedule(keys, lambda n: SLIDING if (n + 1) % 6 else FULL, (FULL, SLIDING))
    keys.note("log_scaling_n_floor", say("distances count cached tokens, the temperature counts position_ids"))
    limit = keys.number("rel_l2_clip_threshold")
    said_by = (("limit", keys.said_by("rel_l2_clip_threshold")),)
    return _stack(keys, kinds, names, squared=False, more={"limit": limit}, said_by=said_by)


def _stack(
    keys: Keys,
    kinds: tuple[str, ...],
    names: Mapping[str, str],
    *,
    squared: bool,
    more: dict[str, Any] | None = None,
    said_by: tuple[tuple[str, str], ...] = (),
) -> PositionSpec:
    """`names`: the weights of each parameter; `squared`: q·k is divided by d_head instead of its root."""
    window = keys.whole("sliding_window_size")
    floor = keys.whole("log_scaling_n_floor", None)
    if floor is None and not squared:
        raise ConfigError(f"{keys.where('log_scaling_n_floor')}: null; the code divides by it and fails")
    layer_of_kind = {}
    for kind in (FULL, SLIDING):
        prefix = "swa_" if kind == SLIDING else ""
        heads, width = f"{prefix}num_attention_heads", f"{prefix}head_dim"
        extent = "sliding_window_size" if kind == SLIDING else "rel_extent"
        arguments = {
            "n_heads": keys.whole(heads),
            "d_in": keys.whole("hidden_size"),
            "profiles": keys.whole("d_rel"),
            "extent": keys.whole(extent),
        } | (more or {})
        sources = [
            ("n_heads", keys.said_by(heads)),
            ("d_in", keys.said_by("hidden_size")),
            ("profiles", keys.said_by("d_rel")),
            ("extent", keys.said_by(extent)),
            *said_by,
        ]
        if kind == FULL and floor is not None:
            arguments |= {"floor": floor, "alpha": keys.number("log_scaling_alpha", positive=False)}
            sources += [("floor", keys.said_by("log_scaling_n_floor")), ("alpha", keys.said_by("log_scaling_alpha"))]
        d_head = keys.whole(width)
        if squared:
            arguments["scale"] = 1 / d_head
            sources.append(("scale", f"1 / {keys.said_by(width)}"))
        weights = tuple(
            Weight(parameter, f"layers.{{layer}}.self_attn.{name}", reshape=parameter == "project")
            for parameter, name in names.items()
        )
        use = Use("encodings.bases.distance_bank.DistanceBank", tuple(arguments.items()), tuple(sources), weights)
        layer_of_kind[kind] = (Layer((use,), kind, window if kind == SLIDING else None), d_head)
    widths = {layer_of_kind[kind][1] for kind in kinds}
    spec = stack_of(keys, [layer_of_kind[kind][0] for kind in kinds], d_head=widths.pop() if len(widths) == 1 else None)
    keys.note(
        "conv_kernel_size", say("short causal convolutions over keys and values, and around layers, depend on order too")
    )
    return spec


@family("inkling2_vision")
def inkling2_vision(keys: Keys) -> PositionSpec:
    """Interleaved pairs; the learned grid is interpolated bilinearly; the class token has its own learned vector."""
    side = keys.whole("posemb_grid_size")
    table = grid(
        keys, "embeddings.position_embedding.weight", side, side, keys.said_by("posemb_grid_size"), mode="bilinear"
    )
    where = say(
        "rotation: (row, column) of the patch, from 1, in blocks of spatial_merge_size × spatial_merge_size, "
        "the class token first, at (0, 0); learned grid: (row, column, height, width) from 0, "
        "nothing for the class token, at (-1, -1)"
    )
    use = axial(keys, even_head(keys), maps=COLUMNS_ROWS, layout="interleaved")
    return tower(keys, [use], embedding=[table], coordinates=where)
