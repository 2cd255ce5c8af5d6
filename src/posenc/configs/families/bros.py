"""BROS: a learned position table for text, and a bias from sinusoids of the difference of two boxes."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.families.layoutlm import embedded
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("bros")
def bros(keys: Keys) -> PositionSpec:
    """Eight corner differences share hidden_size / 4 channels."""
    d_model, heads, differences = keys.whole("hidden_size"), keys.whole("num_attention_heads"), keys.whole("dim_bbox", 8)
    if differences != 8 or d_model % 64:
        raise ConfigError(
            f"{keys.where('dim_bbox')}: {differences} differences of {d_model // 4} channels; expected "
            "8, and a hidden_size that is a multiple of 64"
        )
    derived = {"dim_bbox_sinusoid_emb_2d": d_model // 4, "dim_bbox_sinusoid_emb_1d": d_model // 32}
    for name, value in derived.items():
        if keys.get(name, value) != value:
            keys.warning(name, say("overwritten by the value derived from hidden_size: {value}", value=value))
    arguments = (("d_head", d_model // heads), ("width", d_model // 32), ("scale", keys.number("bbox_scale", 100.0)))
    said_by = (
        ("d_head", "hidden_size / num_attention_heads"),
        ("width", "hidden_size / 4 / dim_bbox"),
        ("scale", keys.said_by("bbox_scale")),
    )
    use = Use(
        "encodings.of_families.sinusoidal_boxes.SinusoidalBoxes",
        arguments,
        said_by,
        (Weight("project", "bbox_embeddings.bbox_projection.weight"),),
    )
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer((use,), causal=causal)] * keys.whole("num_hidden_layers")
    spec = stack_of(
        keys, layers, length=None, coordinates=say("in the scores: the box (x0, y0, x1, y1), real numbers from 0 to 1")
    )
    length = keys.whole("max_position_embeddings")
    positions = embedded(keys, "positions", learned_table(keys, BERT_TABLE), say("0, 1, 2, … along the text"), length)
    return replace(spec, parts=(positions,))
