"""SAM 2 and EdgeTAM: vision encoders, prompts as random Fourier features, and a memory with axial RoPE.

RoPE reads the column first, then the row; interleaved pairs."""

from __future__ import annotations

from typing import Any

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys
from posenc.dialects.patches import Maps, axial, grid
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

COLUMNS_ROWS: Maps = (("axial", (("order", (1, 0)),)),)

PIXELS = "(row, column) of each map, counted from 1, over the last, times 2π: Positions.pixels"

PROMPTS = "(x, y) of a point, half a pixel added, over the size of the image: from 0 to 1"


@family("sam2_hiera_det_model")
def sam2_hiera_det_model(keys: Keys) -> PositionSpec:
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
    keys.note("window_size_per_stage", "attention within windows has no positions of its own")
    layers = [Layer((large, small) if n == 0 else (), kind, causal=False) for n, kind in enumerate(kinds)]
    where = "(row, column, height, width) of the patch, from 0, row by row"
    return PositionSpec(keys.family, layers=tuple(layers), d_model=d_model, coordinates=where)


@family("sam2_vision_model", "sam3_vision_model", "edgetam_vision_model")
def sam2_vision_model(keys: Keys) -> PositionSpec:
    """The neck gives every map sinusoids, which the memory and the decoders add. EdgeTAM's backbone is timm's RepViT."""
    width = keys.whole("fpn_hidden_size")
    neck = Layer((sine(keys, width, "fpn_hidden_size"),), "neck", causal=False)
    foreign = (keys.table("backbone_config") or keys.facts["parts"].get("backbone_config", {})).get("model_type")
    if foreign == "timm_wrapper":
        keys.note("backbone_config", "a model of timm, which is not read; RepViT, EdgeTAM's, has convolutions only")
    inside = () if foreign == "timm_wrapper" else parts(keys, "backbone_config")
    return PositionSpec(keys.family, layers=(neck,), parts=inside, d_model=width, coordinates=PIXELS)


def sine(keys: Keys, width: int, key: str, **options: Any) -> Use:
    """Half the channels for the row, half for the column, sine and cosine in turn."""
    said = (("d_model", keys.said_by(key)), ("base", "constant of the code"), ("layout", "constant of the code"))
    arguments = {"d_model": width, "layout": "interleaved", "axes": 2} | options
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), said)


@family(
    "sam2_prompt_encoder",
    "sam2_video_prompt_encoder",
    "sam3_tracker_prompt_encoder",
    "sam3_tracker_video_prompt_encoder",
    "edgetam_prompt_encoder",
    "edgetam_video_prompt_encoder",
)
def sam2_prompt_encoder(keys: Keys) -> PositionSpec:
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
def sam2_mask_decoder(keys: Keys) -> PositionSpec:
    """No positions of its own: what the prompt encoder gives is added to queries and keys of every layer anew."""
    kinds = ["prompts", "prompts_to_image", "image_to_prompts"] * keys.whole("num_hidden_layers") + ["prompts_to_image"]
    where = "none of its own: the Fourier features of prompts and image are added to queries and keys of every layer"
    return PositionSpec(keys.family, layers=tuple(Layer((), kind, causal=False) for kind in kinds), coordinates=where)


@family("sam2_video", "sam3_tracker_video", "edgetam_video")
def sam2_video(keys: Keys) -> PositionSpec:
    """Patches of this frame turn by their place, those of remembered frames by theirs, in EdgeTAM on a coarser grid of
    their own; pointers to objects keep still."""
    width, heads = keys.whole("memory_attention_hidden_size"), keys.whole("memory_attention_num_attention_heads")
    d_head = width // (keys.whole("memory_attention_downsample_rate") * heads)
    use = axial(keys, d_head, maps=COLUMNS_ROWS, layout="interleaved")
    for name in ("memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes"):
        keys.numbers(name, None)
    keys.number("memory_attention_rope_dropout", None, positive=False)  # dropout, no position
    keys.note(
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
