"""Muse Glimmer and Muse Spark: RoPE in some layers of the text model; axial RoPE and a learned grid for images."""

from __future__ import annotations

from posenc.configs.assumed import with_assumed
from posenc.configs.coordinates import SAME_FRAMES
from posenc.configs.errors import ConfigError
from posenc.configs.families.llama4_vision import COLUMNS_ROWS, FROM_ONE, UNUSED
from posenc.configs.families.modernbert import with_window
from posenc.configs.families.smollm3 import rope_where
from posenc.configs.family import bidirectional, decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.patches import axial, even_head, grid, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING, schedule
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses


@family("muse_glimmer_text", "muse_spark_text")
def muse_glimmer_text(keys: Keys) -> PositionSpec:
    """layer_rope_theta is 0 for layers without positions; any other value means rope_theta."""
    if keys.family == "muse_spark_text":
        keys = with_assumed(keys, {"rope_type": "default", "rope_theta": 500000.0})
    last = keys.whole("num_hidden_layers") - 1
    kinds = schedule(keys, lambda n: SLIDING if (last - n) % 4 else FULL)
    use = rope(keys, d_head=head_width(keys))
    listed = keys.numbers("layer_rope_theta", None)
    if listed is not None and len(listed) <= last:
        raise ConfigError(
            f"{keys.where('layer_rope_theta')}: expected a number for each of {last + 1} layers, got {len(listed)}"
        )
    bases = listed[: last + 1] if listed is not None else [(last - n) % 4 for n in range(last + 1)]
    base = use.rotation.base if use and use.rotation else None
    if listed and any(base_of_layer not in (0, base) for base_of_layer in listed):
        keys.error(
            "layer_rope_theta", say("only whether it is 0 matters: all other layers use the base {base:g}", base=base)
        )
    spec = decoder(keys, use, kinds=kinds)
    return rope_where(spec, [bool(base_of_layer) for base_of_layer in bases])


@family("muse_glimmer_assistant")
def muse_glimmer_assistant(keys: Keys) -> PositionSpec:
    """A draft model: a block of new tokens attends to the main model's states of the context, and to itself in both
    directions."""
    kinds = schedule(keys, lambda n: SLIDING)
    keys.note(
        "block_size",
        say("keys are those of the context, then of the block; queries are those of the block, at the last positions"),
    )
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)
    return bidirectional(with_window(spec, 2 * keys.whole("sliding_window") + 1))


WINDOWED = "window_attention"


@family("muse_glimmer_vision", "muse_spark_vision")
def muse_glimmer_vision(keys: Keys) -> PositionSpec:
    """Half pairs. Three of four layers attend within windows of pos_emb_height × pos_emb_height patches.

    In Muse Spark patch n of H × W reads the learned grid as patch n of W × H: correct for square images only.
    """
    count, side, wide = keys.whole("num_hidden_layers"), keys.whole("pos_emb_height"), keys.whole("pos_emb_width")
    if wide != side:
        raise ConfigError(
            f"{keys.where('pos_emb_width')}: {wide} beside pos_emb_height={side}; the code takes the grid for a square one"
        )
    keys.get(UNUSED, None)
    reads = say("(row, column, height, width) from 0")
    if keys.family == "muse_spark_vision":
        reads = say("for patch n of H × W: (n // H, n % H, W, H)")
        keys.warning(
            "pos_emb_height",
            say(
                "patch n of an image of H × W patches reads the learned grid as patch n of W × H: positions "
                "are wrong for images that are not square, as they were in training"
            ),
        )
    keys.note(
        "layer_types",
        say(
            "window_attention has windows of {side} × {side} patches; tokens are in window order, with their "
            "coordinates in the image",
            side=side,
        ),
    )
    kinds = schedule(keys, lambda n: FULL if (n + 1) % 4 == 0 or n == count - 1 else WINDOWED, (FULL, WINDOWED))
    table = grid(
        keys, "position_embedding_table.weight", side, side, keys.said_by("pos_emb_height"), mode="bilinear", border="zero"
    )
    where = clauses(say("rotation: {from_one}", from_one=FROM_ONE), say("learned grid: {reads}", reads=reads), SAME_FRAMES)
    return tower(keys, [axial(keys, even_head(keys), maps=COLUMNS_ROWS)], embedding=[table], kinds=kinds, coordinates=where)
