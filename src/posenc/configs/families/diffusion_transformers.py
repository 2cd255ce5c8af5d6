"""Transformers of image and video diffusion, from the config.json of diffusers, which names their class: _class_name.

Each has bidirectional attention and interleaved pairs, and spectra of their own for frame, row and column.
Read from the code of diffusers 0.42: models/transformers/transformer_flux.py and those beside it.
"""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Rotation, Use
from posenc.support.languages import Words

TEXT_STAYS = say("(frame, row, column) of the patch, from 0; text tokens do not rotate")
PUBLISHED = (16, 56, 56)


@family("FluxTransformer2DModel")
def FluxTransformer2DModel(keys: Keys) -> PositionSpec:
    where = say("(0, row, column) of the patch, from 0; text tokens are at (0, 0, 0)")
    return _turning(keys, _sizes(keys, "axes_dims_rope", PUBLISHED), 10000.0, (19, 38), (24, 128), where)


@family("Flux2Transformer2DModel")
def Flux2Transformer2DModel(keys: Keys) -> PositionSpec:
    where = say(
        "(time, row, column, token): patches are at (0, row, column, 0), those of reference images at times 10, 20, …; "
        "text tokens at (0, 0, 0, 0, 1, 2, …)"
    )
    sizes, base = _sizes(keys, "axes_dims_rope", (32,) * 4), keys.number("rope_theta", 2000.0)
    return _turning(keys, sizes, base, (8, 48), (48, 128), where)


@family("QwenImageTransformer2DModel")
def QwenImageTransformer2DModel(keys: Keys) -> PositionSpec:
    where = say(
        "(image, row, column), rows and columns counted from the middle: -⌈H/2⌉ … ⌊H/2⌋ - 1; text follows at the larger of "
        "⌊H/2⌋ and ⌊W/2⌋, the same on every axis"
    )
    if keys.flag("use_layer3d_rope", False):
        where = say(
            "(image, row, column), rows and columns counted from the middle; layers are images 0, 1, …, the image that is "
            "taken apart is -1; text follows at the larger of ⌊H/2⌋, ⌊W/2⌋ and the number of layers, the same on every axis"
        )
    return _turning(keys, _sizes(keys, "axes_dims_rope", PUBLISHED), 10000.0, (60, 0), (24, 128), where)


@family("HunyuanVideoTransformer3DModel")
def HunyuanVideoTransformer3DModel(keys: Keys) -> PositionSpec:
    sizes, base = _sizes(keys, "rope_axes_dim", PUBLISHED), keys.number("rope_theta", 256.0)
    return _turning(keys, sizes, base, (20, 40), (24, 128), TEXT_STAYS)


@family("WanTransformer3DModel")
def WanTransformer3DModel(keys: Keys) -> PositionSpec:
    """Rows and columns have 2⌊d/6⌋ channels each, frames the rest. Text is in cross attention, without positions."""
    d_head = keys.whole("attention_head_dim", 128)
    side = 2 * (d_head // 6)
    where = say("(frame, row, column) of the patch, from 0; cross attention to text has no positions")
    spec = _turning(keys, (d_head - 2 * side, side, side), 10000.0, (40, 0), (40, 128), where)
    keys.whole("rope_max_seq_len", None)
    return spec


@family("CogVideoXTransformer3DModel")
def CogVideoXTransformer3DModel(keys: Keys) -> PositionSpec:
    """RoPE in the 5B models; in the others sinusoids, fixed or as the beginning of a learned table."""
    if keys.flag("use_rotary_positional_embeddings", False):
        d_head = keys.whole("attention_head_dim", 64)
        side = d_head // 8 * 3
        where = say(
            "(frame, row, column) of the patch, rows and columns scaled to the grid of the trained size; text tokens do "
            "not rotate"
        )
        if keys.flag("use_learned_positional_embeddings", False):
            keys.note("use_learned_positional_embeddings", say("a learned table is added to the patches as well: not read"))
        return _turning(keys, (d_head // 4, side, side), 10000.0, (30, 0), (30, 64), where)
    if keys.flag("use_learned_positional_embeddings", False):
        where = say("a learned table, which begins as sinusoids of frame, column and row: not built here")
        return _without_rotation(keys, (30, 0), (30, 64), where)
    where = say("(frame, row, column) of the patch, counted from 0; text tokens, at (-1, 0, 0), get nothing")
    spec = _without_rotation(keys, (30, 0), (30, 64), where)
    frame_step, patch_step = (
        keys.number(f"{axis}_interpolation_scale", default) for axis, default in (("temporal", 1.0), ("spatial", 1.875))
    )
    table = Use(
        "encodings.sinusoidal_3d.Sinusoidal3D",
        (("d_model", spec.d_model), ("frame_step", frame_step), ("patch_step", patch_step)),
        (
            ("d_model", "num_attention_heads, attention_head_dim"),
            ("frame_step", keys.said_by("temporal_interpolation_scale")),
            ("patch_step", keys.said_by("spatial_interpolation_scale")),
        ),
    )
    return replace(spec, layers=(Layer((table,), causal=False), *spec.layers[1:]))


@family("LTXVideoTransformer3DModel")
def LTXVideoTransformer3DModel(keys: Keys) -> PositionSpec:
    """One spectrum over the whole width, before it is divided into heads, so that every head has other frequencies."""
    where = say(
        "(time, row, column) of the patch as shares of 20 seconds and of 2048 pixels, from -1 to 1; cross attention to "
        "text has no positions"
    )
    spec = _without_rotation(keys, (28, 0), (32, 64), where)
    width = keys.whole("num_attention_heads", 32) * keys.whole("attention_head_dim", 64)
    rotation = Rotation(width, 10000.0, "frequencies.wide.spectrum")
    said_by = (("d_head", keys.said_by("attention_head_dim")), ("n_heads", keys.said_by("num_attention_heads")))
    arguments = (("d_head", spec.d_head), ("n_heads", spec.n_heads), ("frequencies", rotation))
    layer = Layer((Use("encodings.of_families.wide_rope.WideRoPE", arguments, said_by),), causal=False)
    return replace(spec, layers=(layer,) * len(spec.layers))


@family("SD3Transformer2DModel")
def SD3Transformer2DModel(keys: Keys) -> PositionSpec:
    """Sinusoids of column, then row, from a table of pos_embed_max_size² of which each image takes the middle."""
    size, patch, most = keys.whole("sample_size", 128), keys.whole("patch_size", 2), keys.whole("pos_embed_max_size", 96)
    heads, d_head = keys.whole("num_attention_heads", 18), keys.whole("attention_head_dim", 64)
    scale = (size // patch) / most
    table = Use(
        "encodings.sinusoidal.Sinusoidal",
        (("d_model", heads * d_head), ("layout", "sin_cos"), ("axes", 2), ("reads", (1, 0)), ("scale", scale)),
        (
            ("d_model", "num_attention_heads, attention_head_dim"),
            ("scale", "sample_size / patch_size / pos_embed_max_size"),
        ),
    )
    where = say(
        "(row, column) of the patch + ⌊({most} - rows)/2⌋ and ⌊({most} - columns)/2⌋: the middle of a table of {most} × "
        "{most}; text tokens get nothing",
        most=most,
    )
    layers = [Layer(causal=False)] * keys.whole("num_layers", 18)
    layers[0] = Layer((table,), causal=False)
    return PositionSpec(
        keys.family, layers=tuple(layers), coordinates=where, d_model=heads * d_head, d_head=d_head, n_heads=heads
    )


def _sizes(keys: Keys, name: str, assumed: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(keys.wholes(name, assumed))


def _layers(keys: Keys, counts: tuple[int, int]) -> int:
    """num_layers, and num_single_layers where the class has them; `counts` are the class's defaults."""
    single = keys.whole("num_single_layers", counts[1], least=0) if counts[1] else 0
    return int(keys.whole("num_layers", counts[0]) + single)


def _turning(
    keys: Keys, sizes: tuple[int, ...], base: float, counts: tuple[int, int], heads: tuple[int, int], where: Words
) -> PositionSpec:
    """RoPE with sizes[a] channels for axis a in every layer; `counts` and `heads` are the class's defaults."""
    d_head = keys.whole("attention_head_dim", heads[1])
    if sum(sizes) != d_head or any(size % 2 for size in sizes):
        raise ConfigError(
            f"{keys.where('attention_head_dim')}: {d_head} channels, but the axes have {list(sizes)}; expected even "
            "numbers that sum to it"
        )
    rotation = Rotation(d_head, base, "configs.by_axis.by_axis", (("sizes", sizes),))
    said_by = (("d_head", keys.said_by("attention_head_dim")), ("layout", "constant of the code"))
    arguments = (("d_head", d_head), ("layout", "interleaved"), ("frequencies", rotation))
    spec = _without_rotation(keys, counts, heads, where)
    layer = Layer((Use("encodings.rope.RoPE", arguments, said_by),), causal=False)
    return PositionSpec(
        keys.family,
        layers=(layer,) * len(spec.layers),
        coordinates=where,
        d_model=spec.d_model,
        d_head=d_head,
        n_heads=spec.n_heads,
    )


def _without_rotation(keys: Keys, counts: tuple[int, int], heads: tuple[int, int], where: Words) -> PositionSpec:
    n_heads, d_head = keys.whole("num_attention_heads", heads[0]), keys.whole("attention_head_dim", heads[1])
    return PositionSpec(
        keys.family,
        layers=(Layer(causal=False),) * _layers(keys, counts),
        coordinates=where,
        d_model=n_heads * d_head,
        d_head=d_head,
        n_heads=n_heads,
    )
