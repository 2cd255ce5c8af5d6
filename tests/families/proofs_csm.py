"""posenc.configs.families.csm, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import IDS, Proof, build, config_of, frequencies, module_named, proof, rotary, spec_of, tokens
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import LLAMA3, YARN, hidden


@proof("pocket_tts", "gradium_phonon_tts")
def pocket_tts(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer")
    for more in ({}, {"rope_parameters": YARN}):
        config = config_of(model_type, flow_head_config={"condition_dim": 64}, **more)
        model, spec = build(config), spec_of(config)
        rotary(result, config, spec, model, most=allowed(spec))
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("higgs_audio_v2")
def higgs_audio_v2(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, Llama 3's scaling")
    for more in ({}, {"rope_parameters": YARN}):
        config = config_of(model_type, head_dim=24, **more)
        model, spec = build(config), spec_of(config)
        rotary(result, config, spec, model, most=allowed(spec))
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("csm")
def csm(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; parts: depth decoder over codebooks, codec")
    config = config_of(
        model_type,
        rope_parameters=LLAMA3,
        num_codebooks=2,
        codebook_size=8,
        depth_decoder_config={"num_codebooks": 2, "backbone_hidden_size": 64, "hidden_size": 32, "num_attention_heads": 2},
    )
    model, spec = build(config, "CsmBackboneModel"), spec_of(config, defaults=True)
    rotary(result, config, spec, model, inputs={"input_ids": tokens((2, 8, 2), 8)})
    frequencies(result, module_named(model, "rotary_emb"), spec)
    result.equal("parts", [part.family for part in spec.parts], ["csm_depth_decoder_model", "mimi"])
    return result


@proof("csm_depth_decoder_model")
def csm_depth_decoder_model(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over the codebooks of one frame")
    config = config_of(model_type, num_codebooks=9, backbone_hidden_size=64, rope_parameters=LLAMA3)
    model, spec = build(config, "CsmDepthDecoderModel"), spec_of(config)
    found = turned_inside(
        result, spec, model, model.rotary_emb, inputs_embeds=torch.randn(2, 8, 64), position_ids=IDS, softmax=True
    )
    hidden(result, spec, found)
    frequencies(result, model.rotary_emb, spec)
    return result
