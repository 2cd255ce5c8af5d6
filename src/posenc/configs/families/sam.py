"""SAM, ViTDet and SegGPT: decomposed relative position bias, one vector for the row and one for the column difference."""

from __future__ import annotations

from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, even_head, grid, side_of, square_side_of
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import Words, clauses

LINEARLY = say("for images of another size the vectors are interpolated linearly: DecomposedBias.resized")


def decomposed(keys: Keys, n_layers: int, window: int, windowed: tuple[int, ...], path: str) -> list[Layer]:
    """Layers in `windowed` attend within `window` × `window` cells, the others within the whole image."""
    d_head, (height, width, origin) = even_head(keys, multiple=1), side_of(keys)
    layers = []
    for n in range(n_layers):
        size = (window, window) if n in windowed else (height, width)
        about = (
            ("d_head", keys.said_by("hidden_size")),
            ("window", keys.said_by("window_size") if n in windowed else origin),
        )
        weights = (Weight("rows", f"{path.format(n)}.rel_pos_h"), Weight("columns", f"{path.format(n)}.rel_pos_w"))
        use = Use("encodings.decomposed.DecomposedBias", (("d_head", d_head), ("window", size)), about, weights)
        layers.append(Layer((use,), "window" if n in windowed else "full_attention", causal=False))
    return layers


def _upon(keys: Keys, table: list[Use], layers: list[Layer], where: Words = RASTER) -> PositionSpec:
    return stack_of(keys, layers, embedding=table, length=None, coordinates=where)


def _plain(layers: list[Layer]) -> list[Layer]:
    return [Layer((), layer.kind, causal=False) for layer in layers]


@family("vitdet")
def vitdet(keys: Keys) -> PositionSpec:
    """The table has the pretraining size and is interpolated bicubically, without the class row.

    Windows in window_block_indices.
    """
    window, count = keys.whole("window_size", 0, least=0), keys.whole("num_hidden_layers")
    windowed = tuple(int(n) for n in keys.numbers("window_block_indices", ())) if window else ()
    layers = decomposed(keys, count, window, windowed, "layer.{}.attention")
    if not keys.flag("use_relative_position_embeddings"):
        layers = _plain(layers)
    else:
        keys.note("image_size", LINEARLY)
    table = []
    if keys.flag("use_absolute_position_embeddings"):
        height, width, key = square_side_of(keys, "pretrain_image_size")
        table = [grid(keys, "embeddings.position_embeddings", height, width, key, reshape=True, prefix=1, mode="bicubic")]
    return _upon(keys, table, layers, clauses(RASTER, say("the table reads (row, column, height, width)")))


@family("seggpt")
def seggpt(keys: Keys) -> PositionSpec:
    """One image of twice the height, the prompt above the input, and one of their masks; both read the same table."""
    side = keys.whole("pretrain_image_size") // keys.whole("patch_size")
    origin = f"{keys.said_by('pretrain_image_size')} / {keys.said_by('patch_size')}"
    table = grid(keys, "embeddings.position_embeddings", side, side, origin, reshape=True, prefix=1, mode="bicubic")
    layers = decomposed(keys, keys.whole("num_hidden_layers"), 0, (), "layers.{}.attention")
    where = clauses(RASTER, say("prompt and input together"), say("the table reads (row, column, height, width)"))
    return _upon(keys, [table], layers if keys.flag("use_relative_position_embeddings") else _plain(layers), where)


@family(
    "sam_vision_model",
    "sam_hq_vision_model",
    "slanext_vision",
    "got_ocr2_vision",
    "pp_formulanet_vision",
    "pp_chart2table_vision",
)
def sam_vision_model(keys: Keys) -> PositionSpec:
    """One image size; windows in all layers except global_attn_indexes."""
    count, window = keys.whole("num_hidden_layers"), keys.whole("window_size", least=0)
    everywhere = {int(n) for n in keys.numbers("global_attn_indexes", (2, 5, 8, 11))}
    windowed = tuple(n for n in range(count) if n not in everywhere) if window else ()
    layers = decomposed(keys, count, window, windowed, "layers.{}.attn")
    height, width, origin = square_side_of(keys)
    table = [grid(keys, "pos_embed", height, width, origin, reshape=True)] if keys.flag("use_abs_pos", True) else []
    keys.note("window_size", say("windows are padded to their size, and padding is attended to"))
    return _upon(keys, table, layers if keys.flag("use_rel_pos", True) else _plain(layers))


POINTS = say("(x, y) of the point in pixels plus 0.5, divided by the image size")

PLACES = say("(column, row) of the cell plus 0.5, divided by their number")


def _fourier(keys: Keys) -> Use:
    arguments = (("d_model", keys.whole("hidden_size")), ("axes", 2))
    said_by = (("d_model", keys.said_by("hidden_size")), ("axes", "constant of the code"))
    return Use(
        "encodings.bases.fourier.RandomFourier",
        arguments,
        said_by,
        (Weight("matrix", "shared_image_embedding.positional_embedding"),),
    )


@family("sam_prompt_encoder", "sam_hq_prompt_encoder")
def sam_prompt_encoder(keys: Keys) -> PositionSpec:
    """No attention: Fourier features of points and box corners, plus a learned vector for the kind of prompt."""
    return PositionSpec(
        keys.family,
        layers=(Layer((_fourier(keys),), "prompts", causal=False),),
        coordinates=POINTS,
        d_model=keys.whole("hidden_size"),
    )


@family("sam_mask_decoder", "sam_hq_mask_decoder")
def sam_mask_decoder(keys: Keys) -> PositionSpec:
    """Image positions are added again in every layer, to queries and keys, not to values."""
    keys.note(
        "hidden_size",
        say(
            "image tokens get the encoding in every layer as queries or keys; prompt tokens get their "
            "own embedding again, except in the self-attention of the first layer"
        ),
    )
    layers = (Layer((_fourier(keys),), "two_way", causal=False),) * keys.whole("num_hidden_layers")
    last = Layer((_fourier(keys),), "token_to_image", causal=False)
    return PositionSpec(keys.family, layers=(*layers, last), coordinates=PLACES, d_model=keys.whole("hidden_size"))
