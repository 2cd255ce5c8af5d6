"""posenc.configs.families.bart, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.proofs_roberta import PADDING, TEXT
from families.silenced import added_by


@proof("pp_formulanet_text")
def pp_formulanet_text(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, two unused rows before position 0")
    config = config_of(
        model_type, d_model=64, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=16, max_position_embeddings=40
    )
    model, spec = build(config, "PPFormulaNetTextModel", attention=None), spec_of(config)
    at = posenc.Positions.arange(2, 40)
    added(result, spec, model, "layernorm_embedding", at, {"input_ids": tokens((2, 40))})
    with torch.no_grad():
        result.equal("number of layers", len(model.layers), len(spec.layers))
    return result


SUMMED_LAST = [("blenderbot-small", "decoder")]  # its table comes after the norm

AT = posenc.Positions.arange(2, 12)


@proof("bart", "mbart", "plbart", "blenderbot", "blenderbot-small")
def bart(model_type: str) -> Proof:
    offset = "" if model_type.startswith("blender") else ", two rows before position 0"
    result = Proof(model_type, f"encoder and decoder: learned tables added to the embeddings{offset}")
    config = config_of(
        model_type,
        d_model=64,
        max_position_embeddings=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
    )
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 12))
    for side in ("encoder", "decoder"):
        last = "layers.0" if (model_type, side) in SUMMED_LAST or model_type == "blenderbot" else "layernorm_embedding"
        inputs = {"input_ids": text, "decoder_input_ids": text}
        added(result, spec[side], model, f"{side}.{last}", AT, inputs)
    return result


@proof("mvp")
def mvp(model_type: str) -> Proof:
    result = Proof(
        model_type, "encoder and decoder: learned tables added to the embeddings, two unused rows before position 0"
    )
    sizes = {
        "d_model": 64,
        "max_position_embeddings": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "decoder_ffn_dim": 16,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 16,
    }
    at, text = posenc.Positions.arange(2, 12), tokens((2, 12))
    for prompt in (False, True):
        config = config_of(model_type, use_prompt=prompt, prompt_length=3, prompt_mid_dim=8, **sizes)
        model, spec = build(config, attention=None), spec_of(config)
        for side in ("encoder", "decoder"):
            inputs = {"input_ids": text, "decoder_input_ids": text}
            assert len(spec[side].layers) == len(getattr(model, side).layers)
            added(result, spec[side], model, f"{side}.layernorm_embedding", at, inputs)
    return result


@proof("trocr")
def trocr(model_type: str) -> Proof:
    result = Proof(model_type, "learned table with two unused rows before position 0, or fairseq's sinusoids")
    sizes = {
        "hidden_size": None,
        "num_attention_heads": None,
        "d_model": 63,
        "decoder_layers": 2,
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 16,
    }
    for learned in (True, False):
        config = config_of(
            model_type,
            max_position_embeddings=40,
            pad_token_id=PADDING,
            layernorm_embedding=True,
            use_learned_position_embeddings=learned,
            **sizes,
        )
        model, spec = build(config, "TrOCRForCausalLM", attention=None), spec_of(config)
        if learned:
            added(result, spec, model, "layernorm_embedding", AT)
        else:
            at = posenc.Positions.from_mask(TEXT != PADDING)
            added_by(result, spec, model, "embed_positions", "layernorm_embedding", at, {"input_ids": TEXT}, 8.0)
    return result
