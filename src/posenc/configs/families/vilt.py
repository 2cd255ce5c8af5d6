"""ViLT, TVP and GIT: one stack over words and patches, each with its own table."""

from __future__ import annotations

from posenc.configs.families.bert import learned_table
from posenc.configs.families.layoutlm import embedded
from posenc.configs.families.vit import CLASS
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, grid, side_of
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses

WORDS = say("0, 1, 2, … over the words")


@family("vilt")
def vilt(keys: Keys) -> PositionSpec:
    """The grid is interpolated bilinearly with aligned corners, to the size of each image in pixel_mask."""
    height, width, origin = side_of(keys)
    use = grid(
        keys,
        "embeddings.position_embeddings",
        height,
        width,
        origin,
        mode="bilinear",
        align_corners=True,
        prefix=1,
        reshape=True,
    )
    keys.note(
        "max_image_length",
        say("patches are in random order, with their positions; if there are more than this, random ones are dropped"),
    )
    words = learned_table(keys, "text_embeddings.position_embeddings.weight")
    inside = (
        embedded(keys, "words", words, WORDS, keys.whole("max_position_embeddings")),
        embedded(keys, "patches", use, clauses(say("(row, column, height, width) of the patch"), CLASS)),
    )
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, length=None, parts=inside, coordinates=say("words, then the class token, then patches"))


@family("tvp")
def tvp(keys: Keys) -> PositionSpec:
    """Frames are averaged before learned row and column vectors are added."""
    rows, columns = keys.whole("max_grid_row_position_embeddings"), keys.whole("max_grid_col_position_embeddings")
    d_model, both = keys.whole("hidden_size"), "max_grid_row_position_embeddings, max_grid_col_position_embeddings"
    use = Use(
        "encodings.bases.learned_axes.LearnedAxes",
        (("d_model", d_model), ("max_positions", (rows, columns))),
        (("d_model", keys.said_by("hidden_size")), ("max_positions", both)),
        (
            Weight("axis_tables.0", "visual_embeddings.row_position_embeddings.weight"),
            Weight("axis_tables.1", "visual_embeddings.col_position_embeddings.weight"),
        ),
    )
    keys.warning(
        "max_grid_col_position_embeddings",
        say("the code makes one row of vectors into a batch, and fails for more than one video at a time"),
    )
    keys.note(
        "max_grid_row_position_embeddings",
        say(
            "images with more than {rows} × {columns} cells fail, unless the call sets "
            "interpolate_pos_encoding: sums are then interpolated bicubically, unlike here",
            rows=rows,
            columns=columns,
        ),
    )
    keys.note(
        "max_position_embeddings",
        say("the encoder's table of that name, visual_embeddings.position_embeddings, is not read"),
    )
    words = learned_table(keys, "embeddings.position_embeddings.weight")
    inside = (
        embedded(keys, "words", words, WORDS, keys.whole("max_position_embeddings")),
        embedded(keys, "patches", use, clauses(RASTER, say("the mean of all frames"))),
    )
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    where = say("ten learned tokens without positions, then words, then patches")
    return stack_of(keys, layers, length=None, parts=(*inside, *parts(keys, "backbone_config")), coordinates=where)


@family("git")
def git(keys: Keys) -> PositionSpec:
    """Patches of the image, or of video frames, precede the words; attention among patches is bidirectional."""
    frames = keys.whole("num_image_with_embedding", None)
    keys.warning(
        "max_position_embeddings",
        say(
            "with a cache and without position_ids, words continue the count of the cached patches, "
            "not of the words; generate() gives position_ids"
        ),
    )
    layers = [Layer()] * keys.whole("num_hidden_layers")
    inside: tuple[PositionSpec, ...] = (
        embedded(
            keys,
            "words",
            learned_table(keys, "embeddings.position_embeddings.weight"),
            WORDS,
            keys.whole("max_position_embeddings"),
        ),
    )
    if frames is not None:
        width = keys.section("vision_config").whole("hidden_size")
        use = Use(
            "encodings.learned.Learned",
            (("d_model", width), ("max_positions", frames)),
            (("d_model", "vision_config.hidden_size"), ("max_positions", keys.said_by("num_image_with_embedding"))),
            tuple(Weight("table", f"img_temporal_embedding.{n}", reshape=True, into=(0, n)) for n in range(frames)),
        )
        inside += (embedded(keys, "frames", use, say("the index of the frame, the same for all its patches"), frames),)
    else:
        keys.note("num_image_with_embedding", say("null: one image; videos fail"))
    return stack_of(
        keys,
        layers,
        length=None,
        parts=(*inside, *parts(keys, "vision_config")),
        coordinates=say("patches, without positions here, then words"),
    )
