"""SAM 3: a vision encoder with axial RoPE in windows, and a DETR-style detector."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.families.sam2 import COLUMNS_ROWS, sine
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, SIZED, axial, even_head, grid, pair, side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses


@family("sam3_vit_model")
def sam3_vit_model(keys: Keys) -> PositionSpec:
    """A learned grid repeated like tiles. In windows, RoPE counts from the corner of the window.

    In the other layers over the
    whole image, scaled to the span of a window."""
    d_head, window = even_head(keys), keys.whole("window_size")
    table = grid(keys, "embeddings.position_embeddings", *side_of(keys, "pretrain_image_size"), reshape=True, mode="tile")
    side, _, origin = side_of(keys)
    whole, count = keys.numbers("global_attn_indexes", (7, 15, 23, 31)), keys.whole("num_hidden_layers")
    if len(set(pair(keys, "image_size"))) > 1:
        keys.error("image_size", say("the code swaps height and width for images that are not square"))
    inside = axial(keys, d_head, maps=COLUMNS_ROWS, layout="interleaved")
    across = _slowed(inside, side / window, origin) if side != window else inside
    uses = [across if n in whole else inside for n in range(count)]
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    layers = [Layer((table, use) if n == 0 else (use,), kinds[n], causal=False) for n, use in enumerate(uses)]
    where = clauses(RASTER, say("in window_attention from the corner of each window"), SIZED)
    return stack_of(keys, layers, length=None, d_head=d_head, coordinates=where)


def _slowed(use: Use, factor: float, origin: str) -> Use:
    """The same rotation with all frequencies divided: coordinates · window / side."""
    rotation = use.rotation
    assert rotation is not None
    slow = replace(rotation, kind="linear", parameters=(("factor", factor),))
    arguments = tuple((name, slow if value is rotation else value) for name, value in use.arguments)
    return replace(use, arguments=arguments, said_by=(*use.said_by, ("factor", f"{origin}, over window_size")))


@family("sam3_geometry_encoder", "sam3_lite_text_geometry_encoder")
def sam3_geometry_encoder(keys: Keys) -> PositionSpec:
    """Sinusoids of the centre of a box, and its height and width, through a projection, added to each box."""
    width = keys.whole("hidden_size")
    boxes = sine(keys, width, "hidden_size", scale=6.283185307179586)
    keys.note(
        "hidden_size", say("height and width of a box are concatenated to the sinusoids, and all go through a projection")
    )
    kinds = ["boxes", "boxes_to_image"] * keys.whole("num_layers")
    layers = [Layer((boxes,) if n == 0 else (), kind, causal=False) for n, kind in enumerate(kinds)]
    where = say("(row, column) of the centre of a box, from 0 to 1; the neck's sinusoids are added to the image's keys")
    return PositionSpec(keys.family, layers=tuple(layers), d_model=width, coordinates=where)


@family("sam3_detr_encoder", "sam3_lite_text_detr_encoder")
def sam3_detr_encoder(keys: Keys) -> PositionSpec:
    """No positions of its own: the neck's sinusoids are added to queries and keys in every layer."""
    kinds = ["image", "image_to_prompts"] * keys.whole("num_layers")
    where = say("none of its own: the neck's sinusoids are added to queries and keys of the image in every layer")
    return PositionSpec(keys.family, layers=tuple(Layer((), kind, causal=False) for kind in kinds), coordinates=where)


@family("sam3_detr_decoder", "sam3_lite_text_detr_decoder")
def sam3_detr_decoder(keys: Keys) -> PositionSpec:
    """A network of sinusoids of the current boxes is added to queries in every layer; attention to the image has a bias by
    the distance of a patch from the sides of the box."""
    width, heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    boxes = sine(keys, 2 * width, "hidden_size", axes=4, reads=(1, 0, 2, 3), scale=6.283185307179586)
    names = {
        "inner": "layer1.weight",
        "inner_offset": "layer1.bias",
        "outer": "layer2.weight",
        "outer_offset": "layer2.bias",
    }
    weights = tuple(
        Weight(f"{axis}_{part}", f"box_rpb_embed_{letter}.{name}")
        for axis, letter in (("rows", "y"), ("columns", "x"))
        for part, name in names.items()
    )
    said_by = (("n_heads", keys.said_by("num_attention_heads")), ("hidden", keys.said_by("hidden_size")))
    sides = Use("encodings.of_families.box_bias.BoxBias", (("n_heads", heads), ("hidden", width)), said_by, weights)
    keys.note(
        "num_queries",
        say(
            "the first query, which says whether anything is present, has neither; all layers share "
            "the bias, which is for one feature map only"
        ),
    )
    uses = {"queries": (boxes,), "queries_to_text": (), "queries_to_image": (sides,)}
    count = keys.whole("num_layers")
    layers = tuple(Layer(added, kind, causal=False) for _ in range(count) for kind, added in uses.items())
    where = say(
        "(x, y, width, height) of each query's box, from 0 to 1; the channels are those of y, x, width, height; "
        "patches at (row / rows, column / columns), their upper left corners"
    )
    return PositionSpec(keys.family, layers=layers, d_model=width, coordinates=where)


@family("sam3_mask_decoder", "sam3_lite_text_mask_decoder")
def sam3_mask_decoder(keys: Keys) -> PositionSpec:
    """One attention to the prompt, then convolutions."""
    layer = Layer((), "image_to_prompts", causal=False)
    return PositionSpec(keys.family, layers=(layer,), coordinates=say("none: convolutions"))


@family("sam3_lite_text_text_model")
def sam3_lite_text_text_model(keys: Keys) -> PositionSpec:
    """A learned table, interpolated to the length of the text: the encoding depends on length."""
    rows, width, count = keys.whole("max_position_embeddings"), keys.whole("hidden_size"), keys.whole("num_hidden_layers")
    keys.warning(
        "max_position_embeddings",
        say(
            "for a text of another length the table of {rows} rows is interpolated (Learned.resize(n, "
            "'centres')): the encoding of a token depends on the length",
            rows=rows,
        ),
    )
    mixing = {0, count - 1} if keys.flag("use_repmixer_blocks", True) else set()
    said_by = (("max_positions", keys.said_by("max_position_embeddings")), ("d_model", keys.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", width), ("max_positions", rows)),
        said_by,
        (Weight("table", "embeddings.position_embedding.position_embedding", reshape=True),),
    )
    kinds = ["convolution" if n in mixing else "full_attention" for n in range(count)]
    return tower(keys, [], embedding=[table], kinds=kinds, length=rows, coordinates=SEQUENCE)
