"""Kimi K2.5: DeepSeek-V3's text model; a vision encoder with axial RoPE, a learned grid and sinusoids of the frame."""

from __future__ import annotations

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.families.qwen2_vl import with_section_type
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import RASTER, SIZED, axial, even_head, grid, tower
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use
from posenc.support.languages import clauses

COLUMNS_FIRST = (("axial", (("alternating", True), ("order", (1, 0)))),)


@family("kimi_k25")
def kimi_k25(keys: Keys) -> PositionSpec:
    """Published files call the text model kimi_k2, which is DeepSeek-V3's code."""
    inner = keys.table("text_config")
    named = with_section_type(keys, "text_config", "deepseek_v3") if inner.get("model_type") == "kimi_k2" else keys
    return PositionSpec(keys.family, parts=parts(named, "text_config", "vision_config"), coordinates=LIKE_TEXT)


@family("kimi_vl")
def kimi_vl(keys: Keys) -> PositionSpec:
    """DeepSeek-V3's text model, and MoonViT."""
    inner = {"text_config": "deepseek_v3", "vision_config": "moonvit"}
    return PositionSpec(keys.family, parts=parts(keys, **inner), coordinates=LIKE_TEXT)


@family("moonvit")
def moonvit(keys: Keys) -> PositionSpec:
    """As Kimi K2.5's encoder without frames; interleaved pairs, columns before rows for each frequency."""
    height, width = keys.whole("init_pos_emb_height", 64), keys.whole("init_pos_emb_width", 64)
    origin = f"{keys.said_by('init_pos_emb_height')}, {keys.said_by('init_pos_emb_width')}"
    table = grid(keys, "pos_emb.weight", height, width, origin, reshape=True, mode="bicubic")
    turn = axial(keys, even_head(keys), maps=COLUMNS_FIRST, layout="interleaved")
    return tower(keys, [turn], embedding=[table], coordinates=clauses(RASTER, SIZED))


@family("kimi_k25_vision")
def kimi_k25_vision(keys: Keys) -> PositionSpec:
    """Columns before rows for each frequency; a bicubic grid; sinusoids of the frame, none for a single image."""
    height, width = keys.whole("pos_emb_height"), keys.whole("pos_emb_width")
    if height != width:
        raise ConfigError(
            f"{keys.where('pos_emb_width')}: {width} beside pos_emb_height={height}; the code takes the grid "
            "for a square one"
        )
    d_model, frames = keys.whole("hidden_size"), keys.whole("pos_emb_time")
    origin = f"{keys.said_by('pos_emb_height')}, {keys.said_by('pos_emb_width')}"
    table = grid(
        keys, "pos_emb.position_embeddings", height, width, origin, reshape=True, mode="bicubic", axes=5, reads=(0, 1, 2, 3)
    )
    times = Use(
        "encodings.sinusoidal.Sinusoidal",
        (("d_model", d_model), ("layout", "sin_cos"), ("axes", 5), ("reads", (4,)), ("offset", -1), ("silent", "negative")),
        (("d_model", keys.said_by("hidden_size")), ("layout", "constant of the code"), ("base", "constant of the code")),
    )
    keys.note(
        "pos_emb_time",
        say(
            "a clip has up to {frames} frames with full attention among their patches; only the input "
            "encoding distinguishes frames",
            frames=frames,
        ),
    )
    where = clauses(
        RASTER,
        say(
            "the input encoding reads (row, column, height, width, frame), frames from 1 and 0 in "
            "single images, rotation (row, column)"
        ),
    )
    return tower(keys, [axial(keys, even_head(keys), maps=COLUMNS_FIRST)], embedding=[table, times], coordinates=where)
