"""Qwen's audio encoders: sinusoids counted anew in every chunk of sound, after the convolutions."""

from __future__ import annotations

from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use


@family("qwen2_5_omni_audio_encoder", "qwen3_omni_moe_audio_encoder")
def _(keys: Keys) -> PositionSpec:
    return _encoder(keys, "max_source_positions")


@family("qwen3_asr_encoder")
def _(keys: Keys) -> PositionSpec:
    return _encoder(keys, "max_position_embeddings")


def _encoder(keys: Keys, length: str) -> PositionSpec:
    """[sin | cos] to 1/10 000; attention within the chunk, or n_window_infer frames where the family has that."""
    rows, window, d_model = keys.whole(length), 2 * keys.whole("n_window"), keys.whole("d_model")
    said = (("d_model", keys.said_by("d_model")), ("layout", "constant of the code"), ("base", "constant of the code"))
    added = Use(
        "encodings.sinusoidal.Sinusoidal", (("d_model", d_model), ("layout", "sin_cos"), ("denominator", "d/2-1")), said
    )
    attended = keys.whole("n_window_infer", window)
    keys.find(
        "note",
        "n_window",
        f"a chunk is {window} mel frames, counted from 0; attention spans {attended} of them; the table has {rows} rows",
    )
    layers = [Layer((), "window_attention", causal=False)] * keys.whole("encoder_layers")
    where = "0, 1, 2, … along what the convolutions leave of a chunk of 2·n_window mel frames, anew in every chunk"
    return stack_of(
        keys, layers, embedding=[added], width="d_model", heads="encoder_attention_heads", length=rows, coordinates=where
    )
