"""posenc.configs.families.t5gemma, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Call, Proof, build, config_of, proof, spec_of
from families.turning import LINEAR, LLAMA3, YARN, by_kind, compared

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 32,
    "sliding_window": 3,
    "dropout_rate": 0.0,
}

ENCODED = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(3))


def own(call: Call) -> Call | None:
    """Attention of a stack to itself, not to the encoder."""
    return call if "SelfAttention" in type(call.module).__name__ else None


@proof("t5_gemma_module")
def t5_gemma_module(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, layers with and without a window; encoders are bidirectional")
    for is_decoder, ending, parameters in ((False, "Encoder", YARN), (True, "Decoder", LLAMA3), (False, "Encoder", LINEAR)):
        config = config_of(model_type, **SIZES, is_decoder=is_decoder, rope_parameters=parameters)
        config.cross_attention_hidden_size = 64
        model, spec = build(config, f"T5Gemma{ending}"), spec_of(config)
        given: dict[str, Any] = {"encoder_hidden_states": ENCODED} if is_decoder else {}
        compared(result, model, spec, keep=own, **given)
        by_kind(result, model.rotary_emb, spec)
    return result


@proof("t5gemma")
def t5gemma(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE in encoder and decoder, none in cross-attention")
    config = config_of(model_type, encoder=SIZES | {"rope_parameters": YARN}, decoder=SIZES | {"rope_parameters": LINEAR})
    model, spec = build(config), spec_of(config)
    compared(result, model.encoder, spec["encoder"], keep=own)
    compared(result, model.decoder, spec["decoder"], keep=own, encoder_hidden_states=ENCODED)
    return result
