"""SAM 2, SAM 3 and EdgeTAM: image towers, prompts as Fourier features, and a memory whose attention turns.

Their rotation reads the column first, then the row, neighbours paired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.dialects.family import family, parts, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.patches import RASTER, SIZED, Maps, axial, even_head, grid, pair, side_of, tower
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

COLUMNS_ROWS: Maps = (("axial", (("order", (1, 0)),)),)
PIXELS = "(row, column) of each map, counted from 1, over the last, times 2π: Positions.pixels"
PROMPTS = "(x, y) of a point, half a pixel added, over the size of the image: from 0 to 1"


# --- image towers -----------------------------------------------------------------------------------------------------


@family("sam2_hiera_det_model")
def _(keys: Keys) -> PositionSpec:
    """A bicubic grid, and a smaller one laid side by side like tiles; windows in all blocks but a few."""
    d_model = keys.whole("hidden_size")
    high, wide = keys.wholes("window_positional_embedding_background_size", (7, 7), length=2)
    counts, windows = keys.wholes("blocks_per_stage", (1, 2, 7, 2)), keys.wholes("window_size_per_stage", (8, 4, 14, 7))
    whole = keys.numbers("global_attention_blocks", (5, 7, 9))
    said = keys.said_by("window_positional_embedding_background_size")
    large = grid(keys, "pos_embed", high, wide, said, reshape=True, transpose=True, mode="bicubic")
    small = grid(
        keys,
        "pos_embed_window",
        windows[0],
        windows[0],
        keys.said_by("window_size_per_stage"),
        reshape=True,
        transpose=True,
        mode="tile",
    )
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(sum(counts))]
    keys.find("note", "window_size_per_stage", "attention within windows has no positions of its own")
    layers = [Layer((large, small) if n == 0 else (), kind, causal=False) for n, kind in enumerate(kinds)]
    where = "(row, column, height, width) of the patch, from 0, row by row"
    return PositionSpec(keys.family, layers=tuple(layers), d_model=d_model, coordinates=where)


@family("sam3_vit_model")
def _(keys: Keys) -> PositionSpec:
    """A learned grid laid side by side like tiles; in windows, rotation counts from each window's corner, in the other
    layers over the whole image, squeezed into the span of a window."""
    d_head, window = even_head(keys), keys.whole("window_size")
    table = grid(keys, "embeddings.position_embeddings", *side_of(keys, "pretrain_image_size"), reshape=True, mode="tile")
    side, _, said = side_of(keys)
    whole, count = keys.numbers("global_attn_indexes", (7, 15, 23, 31)), keys.whole("num_hidden_layers")
    if len(set(pair(keys, "image_size"))) > 1:
        keys.find("error", "image_size", "the code takes height for width in positions of images that are not square")
    inside = axial(keys, d_head, maps=COLUMNS_ROWS, layout="interleaved")
    across = _slowed(inside, side / window, said) if side != window else inside
    uses = [across if n in whole else inside for n in range(count)]
    kinds = ["full_attention" if n in whole else "window_attention" for n in range(count)]
    layers = [Layer((table, use) if n == 0 else (use,), kinds[n], causal=False) for n, use in enumerate(uses)]
    where = RASTER + "; in window_attention from the corner of each window" + SIZED
    return stack_of(keys, layers, length=None, d_head=d_head, coordinates=where)


def _slowed(use: Use, factor: float, said: str) -> Use:
    """The same rotation, all frequencies divided: coordinates · window / side."""
    rotation = use.rotation
    assert rotation is not None
    slow = replace(rotation, kind="linear", parameters=(("factor", factor),))
    arguments = tuple((name, slow if value is rotation else value) for name, value in use.arguments)
    return replace(use, arguments=arguments, said_by=(*use.said_by, ("factor", f"{said}, over window_size")))


@family("sam2_vision_model", "sam3_vision_model", "edgetam_vision_model")
def _(keys: Keys) -> PositionSpec:
    """The neck gives every map sinusoids, which the memory and the decoders add. EdgeTAM's backbone is timm's RepViT."""
    width = keys.whole("fpn_hidden_size")
    neck = Layer((_sine(keys, width, "fpn_hidden_size"),), "neck", causal=False)
    foreign = (keys.table("backbone_config") or keys.facts["parts"].get("backbone_config", {})).get("model_type")
    if foreign == "timm_wrapper":
        keys.find("note", "backbone_config", "a model of timm, which is not read; RepViT, EdgeTAM's, has convolutions only")
    inside = () if foreign == "timm_wrapper" else parts(keys, "backbone_config")
    return PositionSpec(keys.family, layers=(neck,), parts=inside, d_model=width, coordinates=PIXELS)


def _sine(keys: Keys, width: int, key: str, **options: Any) -> Use:
    """Half the channels for the row, half for the column, sine and cosine in turn."""
    said = (("d_model", keys.said_by(key)), ("base", "constant of the code"), ("layout", "constant of the code"))
    arguments = {"d_model": width, "layout": "interleaved", "axes": 2} | options
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), said)


# --- prompts and masks ------------------------------------------------------------------------------------------------


@family(
    "sam2_prompt_encoder",
    "sam2_video_prompt_encoder",
    "sam3_tracker_prompt_encoder",
    "sam3_tracker_video_prompt_encoder",
    "edgetam_prompt_encoder",
    "edgetam_video_prompt_encoder",
)
def _(keys: Keys) -> PositionSpec:
    """Sines and cosines of a random projection, drawn once and kept with the weights; the image's own grid has the same."""
    width = keys.whole("hidden_size")
    arguments = (("d_model", width), ("axes", 2), ("scale", keys.number("scale", 1.0)))
    use = Use(
        "encodings.fourier.RandomFourier",
        arguments,
        (("d_model", keys.said_by("hidden_size")), ("scale", keys.said_by("scale"))),
        (Weight("matrix", "shared_embedding.positional_embedding"),),
    )
    layers = (Layer((use,), "prompts", causal=False),)
    return PositionSpec(keys.family, layers=layers, d_model=width, coordinates=PROMPTS)


@family(
    "sam2_mask_decoder",
    "sam2_video_mask_decoder",
    "sam3_tracker_mask_decoder",
    "sam3_tracker_video_mask_decoder",
    "edgetam_mask_decoder",
    "edgetam_video_mask_decoder",
)
def _(keys: Keys) -> PositionSpec:
    """No positions of its own: what the prompt encoder gives is added to queries and keys of every layer anew."""
    kinds = ["prompts", "prompts_to_image", "image_to_prompts"] * keys.whole("num_hidden_layers") + ["prompts_to_image"]
    where = "none of its own: the Fourier features of prompts and image are added to queries and keys of every layer"
    return PositionSpec(keys.family, layers=tuple(Layer((), kind, causal=False) for kind in kinds), coordinates=where)


# --- SAM 3's detector -------------------------------------------------------------------------------------------------


@family("sam3_geometry_encoder", "sam3_lite_text_geometry_encoder")
def _(keys: Keys) -> PositionSpec:
    """Sinusoids of the middle of a box, then its height and width, through a projection, added to each box."""
    width = keys.whole("hidden_size")
    boxes = _sine(keys, width, "hidden_size", scale=6.283185307179586)
    keys.find(
        "note", "hidden_size", "height and width of a box stand beside the sinusoids, and all go through a projection"
    )
    kinds = ["boxes", "boxes_to_image"] * keys.whole("num_layers")
    layers = [Layer((boxes,) if n == 0 else (), kind, causal=False) for n, kind in enumerate(kinds)]
    where = "(row, column) of the middle of a box, from 0 to 1; the neck's sinusoids are added to the image's keys"
    return PositionSpec(keys.family, layers=tuple(layers), d_model=width, coordinates=where)


@family("sam3_detr_encoder", "sam3_lite_text_detr_encoder")
def _(keys: Keys) -> PositionSpec:
    """No positions of its own: the neck's sinusoids are added to queries and keys of every layer anew."""
    kinds = ["image", "image_to_prompts"] * keys.whole("num_layers")
    where = "none of its own: the neck's sinusoids are added to queries and keys of the image in every layer"
    return PositionSpec(keys.family, layers=tuple(Layer((), kind, causal=False) for kind in kinds), coordinates=where)


@family("sam3_detr_decoder", "sam3_lite_text_detr_decoder")
def _(keys: Keys) -> PositionSpec:
    """Sinusoids of the boxes so far, through a network, added to queries in every layer; and, to the image, a bias by the
    distance of a patch from the sides of the box."""
    width, heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    boxes = _sine(keys, 2 * width, "hidden_size", axes=4, reads=(1, 0, 2, 3), scale=6.283185307179586)
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
    said = (("n_heads", keys.said_by("num_attention_heads")), ("hidden", keys.said_by("hidden_size")))
    sides = Use("encodings.families.box_bias.BoxBias", (("n_heads", heads), ("hidden", width)), said, weights)
    keys.find(
        "note",
        "num_queries",
        "the first query, which says whether anything is there, has neither; all layers share "
        "the bias, which is for one map only",
    )
    uses = {"queries": (boxes,), "queries_to_text": (), "queries_to_image": (sides,)}
    count = keys.whole("num_layers")
    layers = tuple(Layer(added, kind, causal=False) for _ in range(count) for kind, added in uses.items())
    where = (
        "(x, y, width, height) of each query's box, from 0 to 1; the channels are those of y, x, width, height; "
        "patches at (row / rows, column / columns), their upper left corners"
    )
    return PositionSpec(keys.family, layers=layers, d_model=width, coordinates=where)


@family("sam3_mask_decoder", "sam3_lite_text_mask_decoder")
def _(keys: Keys) -> PositionSpec:
    """One attention to the prompt, then convolutions."""
    layer = Layer((), "image_to_prompts", causal=False)
    return PositionSpec(keys.family, layers=(layer,), coordinates="none: convolutions see place by themselves")


@family("sam3_lite_text_text_model")
def _(keys: Keys) -> PositionSpec:
    """A learned table, squeezed to the length of the text where that is another: position depends on length."""
    rows, width, count = keys.whole("max_position_embeddings"), keys.whole("hidden_size"), keys.whole("num_hidden_layers")
    keys.find(
        "warning",
        "max_position_embeddings",
        f"a text of another length has the table of {rows} stretched to it "
        "(Learned.resize(n, 'centres')): what a token gets depends on how many there are",
    )
    mixing = {0, count - 1} if keys.flag("use_repmixer_blocks", True) else set()
    said = (("max_positions", keys.said_by("max_position_embeddings")), ("d_model", keys.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", width), ("max_positions", rows)),
        said,
        (Weight("table", "embeddings.position_embedding.position_embedding", reshape=True),),
    )
    kinds = ["convolution" if n in mixing else "full_attention" for n in range(count)]
    return tower(keys, [], embedding=[table], kinds=kinds, length=rows, coordinates="0, 1, 2, … along the sequence")


# --- memory -----------------------------------------------------------------------------------------------------------


@family("sam2_video", "sam3_tracker_video", "edgetam_video")
def _(keys: Keys) -> PositionSpec:
    """Patches of this frame turn by their place, those of remembered frames by theirs, in EdgeTAM on a coarser grid of
    their own; pointers to objects keep still."""
    width, heads = keys.whole("memory_attention_hidden_size"), keys.whole("memory_attention_num_attention_heads")
    d_head = width // (keys.whole("memory_attention_downsample_rate") * heads)
    use = axial(keys, d_head, maps=COLUMNS_ROWS, layout="interleaved")
    for name in ("memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes"):
        keys.numbers(name, None)
    keys.number("memory_attention_rope_dropout", None, positive=False)  # dropout, no position
    keys.find(
        "note",
        "num_maskmem",
        "sinusoids of the neck, a tenth of them, are added to this frame, and whole ones "
        "to remembered frames, with a learned vector for how long ago; pointers have sinusoids of time",
    )
    kinds = ["memory_self", "memory_cross"] * keys.whole("memory_attention_num_layers")
    where = (
        "(row, column) of a patch, from 0, in every frame alike; what has no place (pointers to objects, "
        "EdgeTAM's latents of a whole frame) at (0, 0), where nothing turns"
    )
    return PositionSpec(
        keys.family,
        layers=tuple(Layer((use,), kind, causal=False) for kind in kinds),
        d_model=width,
        d_head=d_head,
        n_heads=heads,
        coordinates=where,
        parts=parts(keys, "vision_config", "prompt_encoder_config", "mask_decoder_config"),
    )


# --- whole models -----------------------------------------------------------------------------------------------------


@family("sam2", "sam3_tracker", "edgetam")
def _(keys: Keys) -> PositionSpec:
    found = parts(keys, "vision_config", "prompt_encoder_config", "mask_decoder_config")
    return PositionSpec(keys.family, parts=found, coordinates="each part's own")


@family("sam3", "sam3_lite_text")
def _(keys: Keys) -> PositionSpec:
    found = parts(
        keys,
        "vision_config",
        "text_config",
        "geometry_encoder_config",
        "detr_encoder_config",
        "detr_decoder_config",
        "mask_decoder_config",
    )
    return PositionSpec(keys.family, parts=found, coordinates="each part's own")


@family("sam3_video")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "detector_config", "tracker_config"), coordinates="each part's own")
