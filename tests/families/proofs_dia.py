"""posenc.configs.families.dia, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, build, config_of, frequencies, made_of, proof, spec_of, tokens
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import YARN, hidden


@proof("dia_encoder", "dia_decoder")
def dia_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; softmax scale 1" + ", none in cross-attention" * model_type.endswith("r"))
    part = model_type.removeprefix("dia_")
    for more in ({}, {"rope_parameters": YARN}):
        config = config_of(
            model_type,
            head_dim=24,
            cross_num_attention_heads=2,
            cross_num_key_value_heads=2,
            cross_head_dim=16,
            cross_hidden_size=64,
            num_channels=3,
            **more,
        )
        model, spec = build(config, f"Dia{part.title()}"), spec_of(config)
        inputs = {"input_ids": tokens((2, 8))}
        if part == "decoder":
            inputs = {"input_ids": tokens((2, 8, 3)), "encoder_hidden_states": torch.randn(2, 5, 64)}
        found = turned_inside(
            result,
            spec,
            model,
            model.rotary_emb,
            most=allowed(spec),
            **inputs,
            only=lambda call: "SelfAttention" in type(call.module).__name__,
        )
        hidden(result, spec, found)
        assert all(call.scaling == 1 for call in found)
        frequencies(result, model.rotary_emb, spec)
    return result


@proof("dia")
def dia(model_type: str) -> Proof:
    return made_of(
        model_type,
        "text encoder and speech decoder, separate parts",
        {"encoder_config": "DiaEncoder", "decoder_config": "DiaDecoder"},
    )
