"""Evolla: Llama's RoPE in the text model, RoPE or a learned table in the protein encoder (SaProt)."""

from __future__ import annotations

from posenc.configs.coordinates import NOT_PADDING
from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width, read_section, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

SAPROT = {
    "hidden_size": 1280,
    "num_hidden_layers": 33,
    "num_attention_heads": 20,
    "max_position_embeddings": 1026,
    "position_embedding_type": "rotary",
    "rope_theta": 10000.0,
    "pad_token_id": 1,
}


@family("evolla", "EvollaModel")
def evolla(keys: Keys) -> PositionSpec:
    """Attention to proteins, in some layers, and the resampler have no positions."""
    inner = keys.section("protein_encoder_config", "saprot") if keys.has("protein_encoder_config") else Keys({}, "saprot")
    inner.family, inner.facts = (
        "saprot",
        {"class": "SaProtConfig", "names": {}, "defaults": SAPROT, "parts": {}, "base": 1e4},
    )
    return decoder(
        keys,
        rope(keys, d_head=head_width(keys)),
        kinds=same_kind(keys),
        parts=(read_section(inner, "protein_encoder_config"),),
    )


@family("saprot")
def saprot(keys: Keys) -> PositionSpec:
    """RoPE, or a learned table counted from pad_token_id + 1. Its configuration has no model_type of its own."""
    count, d_model = keys.whole("num_hidden_layers"), keys.whole("hidden_size")
    kind = keys.text("position_embedding_type", among=("rotary", "absolute"))
    if kind == "rotary":
        use = rope(keys, d_head=head_width(keys))
        return stack_of(keys, [Layer((use,) if use else (), causal=False)] * count)
    padding = keys.whole("pad_token_id", least=0)
    rows = keys.whole("max_position_embeddings") - padding - 1
    arguments = {"d_model": d_model, "max_positions": rows, "row_offset": padding + 1, "padding_row": padding}
    said_by = (("max_positions", keys.said_by("max_position_embeddings")), ("row_offset", keys.said_by("pad_token_id")))
    table = Use(
        "encodings.learned.Learned",
        tuple(arguments.items()),
        said_by,
        (Weight("table", "embeddings.position_embeddings.weight"),),
    )
    return stack_of(keys, [Layer(causal=False)] * count, embedding=[table], coordinates=NOT_PADDING)
