"""MVP's two tables, with and without its prompts."""

from __future__ import annotations

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of, tokens


@proof("mvp")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: learned tables added to the embeddings, two rows before position 0")
    sizes = {"d_model": 64, "max_position_embeddings": 16, "encoder_layers": 2, "decoder_layers": 2, "decoder_ffn_dim": 16,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 16}  # fmt: skip
    at, text = posenc.Positions.arange(2, 12), tokens((2, 12))
    for prompt in (False, True):
        config = config_of(model_type, use_prompt=prompt, prompt_length=3, prompt_mid_dim=8, **sizes)
        model, spec = build(config, attention=None), spec_of(config)
        for side in ("encoder", "decoder"):
            inputs = {"input_ids": text, "decoder_input_ids": text}
            assert len(spec[side].layers) == len(getattr(model, side).layers)
            added(result, spec[side], model, f"{side}.layernorm_embedding", at, inputs)
    return result
