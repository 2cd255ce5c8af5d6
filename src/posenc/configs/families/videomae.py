"""VideoMAE and TimeSformer: video patches in one sequence, or a grid and a table of frames."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import grid, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses

COUNT = say("the index of the tubelet, from 0: frame by frame, each row by row")


@family("videomae")
def videomae(keys: Keys) -> PositionSpec:
    """Sinusoids of the tubelet's index, added again before the pretraining decoder."""

    def sinusoid(width: str) -> Use:
        return Use(
            "encodings.sinusoidal.Sinusoidal",
            (("d_model", keys.whole(width)),),
            (("d_model", keys.said_by(width)), ("base", "constant of the code")),
        )

    layers = [Layer(causal=False)] * keys.whole("decoder_num_hidden_layers")
    decoder = stack_of(
        keys,
        layers,
        embedding=[sinusoid("decoder_hidden_size")],
        width="decoder_hidden_size",
        heads="decoder_num_attention_heads",
        length=None,
        coordinates=clauses(COUNT, say("visible ones first, then the masked")),
    )
    keys.note("num_frames", say("the index does not distinguish rows and columns: the next row is one image width away"))
    spec = tower(keys, [], embedding=[sinusoid("hidden_size")], coordinates=clauses(COUNT, say("masked ones are left out")))
    return replace(spec, parts=(decoder.with_part("decoder"),))


@family("timesformer")
def timesformer(keys: Keys) -> PositionSpec:
    """Learned vectors for the cell of the patch and for the frame; other sizes read the nearest cell."""
    height, width, origin = side_of(keys)
    kind = keys.text("attention_type", among=("divided_space_time", "space_only", "joint_space_time"))
    table = grid(
        keys,
        "embeddings.position_embeddings",
        height,
        width,
        origin,
        reshape=True,
        prefix=1,
        mode="nearest",
        axes=5,
        reads=(1, 2, 3, 4),
    )
    uses = [table]
    if kind != "space_only":
        frames = keys.whole("num_frames")
        arguments = (
            ("d_model", keys.whole("hidden_size")),
            ("max_positions", (frames,)),
            ("axes", 5),
            ("reads", (0,)),
            ("silent", "negative"),
        )
        said_by = (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("num_frames")))
        weight = Weight("axis_tables.0", "embeddings.time_embeddings", reshape=True)
        uses.append(Use("encodings.bases.learned_axes.LearnedAxes", arguments, said_by, (weight,)))
    keys.warning(
        "image_size",
        say(
            "layers split tokens into num_frames frames, image_size / patch_size patches wide: videos "
            "of other widths or lengths fail or mix up positions"
        ),
    )
    where = say(
        "(frame, row, column, rows, columns) of the patch; patch by patch, each with its frames "
        "in turn; the class token first, at (-1, -1, 0, rows, columns)"
    )
    return tower(keys, [], embedding=uses, kinds=[kind] * keys.whole("num_hidden_layers"), coordinates=where)
