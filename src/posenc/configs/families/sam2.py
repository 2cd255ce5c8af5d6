"""SAM 2 and EdgeTAM: vision encoders, prompts as random Fourier features, and a memory with axial RoPE.

RoPE reads the column first, then the row; interleaved pairs."""

from __future__ import annotations

from typing import Any

from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import Maps, axial, grid
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

COLUMNS_ROWS: Maps = (("axial", (("order", (1, 0)),)),)

PIXELS = say("(row, column) of each feature map, from 1, divided by the last one, times 2π: Positions.pixels")

PROMPTS = say("(x, y) of a point plus half a pixel, divided by the image size: from 0 to 1")


@family("sam2_hiera_det_model")
def sam2_hiera_det_model(keys: Keys) -> PositionSpec:
    """A bicubic grid, and a smaller one repeated like tiles; windows in most blocks."""
    d_model = keys.whole("hidden_size")
    high, wide = keys.wholes("window_positional_embedding_background_size", (7, 7), length=2)
    counts, windows = keys.wholes("blocks_per_stage", (1, 2, 7, 2)), keys.wholes("window_size_per_stage", (8, 4, 14, 7))
    whole = keys.numbers("global_attention_blocks", (5, 7, 9))
    origin = keys.said_by("window_positional_embedding_background_size")
    large = grid(keys, "pos_embed", high, wide, origin, reshape=True, transpose=True, mode="bicubic")
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
    keys.note("window_size_per_stage", say("attention within windows has no positions of its own"))
    layers = [Layer((large, small) if n == 0 else (), kind, causal=False) for n, kind in enumerate(kinds)]
    where = say("(row, column, height, width) of the patch, from 0, row by row")
    return PositionSpec(keys.family, layers=tuple(layers), d_model=d_model, coordinates=where)


@family("sam2_vision_model", "sam3_vision_model", "edgetam_vision_model")
def sam2_vision_model(keys: Keys) -> PositionSpec:
    """The neck adds sinusoids to every feature map, for the memory and the decoders.

    EdgeTAM's backbone is timm's RepViT.
    """
    width = keys.whole("fpn_hidden_size")
    neck = Layer((sine(keys, width, "fpn_hidden_size"),), "neck", causal=False)
    foreign = (keys.table("backbone_config") or keys.facts["parts"].get("backbone_config", {})).get("model_type")
    if foreign == "timm_wrapper":
        keys.note("backbone_config", say("a model of timm, which is not read; EdgeTAM's RepViT has convolutions only"))
    inside = () if foreign == "timm_wrapper" else parts(keys, "backbone_config")
    return PositionSpec(keys.family, layers=(neck,), parts=inside, d_model=width, coordinates=PIXELS)


def sine(keys: Keys, width: int, key: str, **options: Any) -> Use:
    """Half of the channels for the row, half for the column; sines and cosines interleaved."""
    said_by = (("d_model", keys.said_by(key)), ("base", "constant of the code"), ("layout", "constant of the code"))
    arguments = {"d_model": width, "layout": "interleaved", "axes": 2} | options
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), said_by)


@family(
    "sam2_prompt_encoder",
    "sam2_video_prompt_encoder",
    "sam3_tracker_prompt_encoder",
    "sam3_tracker_video_prompt_encoder",
    "edgetam_prompt_encoder",
    "edgetam_video_prompt_encoder",
)
def sam2_prompt_encoder(keys: Keys) -> PositionSpec:
    """Random Fourier features; the matrix is stored with the weights and also used for the image grid."""
    width = keys.whole("hidden_size")
    arguments = (("d_model", width), ("axes", 2), ("scale", keys.number("scale", 1.0)))
    use = Use(
        "encodings.bases.fourier.RandomFourier",
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
    """No positions of its own: the prompt encoder's output is added to queries and keys in every layer."""
    kinds = ["prompts", "prompts_to_image", "image_to_prompts"] * keys.whole("num_hidden_layers") + ["prompts_to_image"]
    where = say("none of its own: the Fourier features of prompts and image are added to queries and keys in every layer")
    return PositionSpec(keys.family, layers=tuple(Layer((), kind, causal=False) for kind in kinds), coordinates=where)


@family("sam2_video", "sam3_tracker_video", "edgetam_video")
def sam2_video(keys: Keys) -> PositionSpec:
    """Axial RoPE over the patches of this frame and of remembered frames, in EdgeTAM on a coarser grid; object pointers are
    not rotated."""
    width, heads = keys.whole("memory_attention_hidden_size"), keys.whole("memory_attention_num_attention_heads")
    d_head = width // (keys.whole("memory_attention_downsample_rate") * heads)
    use = axial(keys, d_head, maps=COLUMNS_ROWS, layout="interleaved")
    for name in ("memory_attention_rope_feat_sizes", "memory_attention_rope_k_sizes"):
        keys.numbers(name, None)
    keys.number("memory_attention_rope_dropout", None, positive=False)  # dropout, no position
    keys.note(
        "num_maskmem",
        say(
            "the neck's sinusoids, times 0.1, are added to this frame, and unscaled to remembered "
            "frames, with a learned vector for their age; object pointers have sinusoids of time"
        ),
    )
    kinds = ["memory_self", "memory_cross"] * keys.whole("memory_attention_num_layers")
    where = say(
        "(row, column) of a patch, from 0, the same in every frame; object pointers and EdgeTAM's "
        "frame latents are at (0, 0), where nothing rotates"
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
