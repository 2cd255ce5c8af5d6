"""Encoder and decoder with a table each."""

from __future__ import annotations

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of, tokens

SUMMED_LAST = [("blenderbot-small", "decoder")]  # its table comes after the norm
AT = posenc.Positions.arange(2, 12)


@proof("bart", "mbart", "plbart", "blenderbot", "blenderbot-small")
def _(model_type: str) -> Proof:
    offset = "" if model_type.startswith("blender") else ", two rows before position 0"
    result = Proof(model_type, f"encoder and decoder: learned tables added to the embeddings{offset}")
    config = config_of(model_type, d_model=64, max_position_embeddings=16, encoder_layers=2, decoder_layers=2,
                       encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=16,
                       decoder_ffn_dim=16)  # fmt: skip
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 12))
    for side in ("encoder", "decoder"):
        last = "layers.0" if (model_type, side) in SUMMED_LAST or model_type == "blenderbot" else "layernorm_embedding"
        inputs = {"input_ids": text, "decoder_input_ids": text}
        added(result, spec[side], model, f"{side}.{last}", AT, inputs)
    return result
