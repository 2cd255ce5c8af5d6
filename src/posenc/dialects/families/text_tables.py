"""Text towers beside an image tower: a learned vector for each token, counted from 0."""

from __future__ import annotations

from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight


@family("siglip_text_model", "siglip2_text_model")
def _(keys: Keys) -> PositionSpec:
    """Every token sees every token."""
    return _stack(keys, causal=False)


@family("aimv2_text_model")
def _(keys: Keys) -> PositionSpec:
    """Causal, as CLIP, where a call gives an attention mask."""
    keys.find(
        "warning",
        "model_type",
        "later tokens are hidden only where a call gives attention_mask; without one the "
        "code makes no mask, and every token sees every token",
    )
    return _stack(keys, causal=True)


def _stack(keys: Keys, causal: bool) -> PositionSpec:
    rows, d_model = keys.whole("max_position_embeddings"), keys.whole("hidden_size")
    said = (("max_positions", keys.said_by("max_position_embeddings")), ("d_model", keys.said_by("hidden_size")))
    table = Use(
        "encodings.learned.Learned",
        (("d_model", d_model), ("max_positions", rows)),
        said,
        (Weight("table", "embeddings.position_embedding.weight"),),
    )
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[table])
