"""posenc.configs.families.led, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of, tokens

STACKS = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}


@proof("led")
def led(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: learned tables added to the embeddings; encoder layers with windows")
    sizes = {"max_encoder_position_embeddings": 24, "max_decoder_position_embeddings": 16}
    config = config_of(model_type, **STACKS, **sizes, attention_window=[4, 8], num_hidden_layers=None)
    model, spec = build(config, attention=None), spec_of(config)
    for side, length in (("encoder", 24), ("decoder", 12)):
        text = tokens((2, length))
        inputs = {"input_ids": text, "decoder_input_ids": text[:, :12]}
        at = posenc.Positions.arange(2, length)
        added(result, spec[side], model, f"{side}.layernorm_embedding", at, inputs)
    for layer, theirs in zip(spec["encoder"].layers, model.encoder.layers, strict=True):
        x, mask = torch.randn(1, 24, 64), torch.zeros(1, 24)
        y = x.clone()
        y[:, 12] += 1
        with torch.no_grad():
            masks = {"attention_mask": mask, "is_index_masked": mask < 0, "is_index_global_attn": mask > 0}
            before, after = (theirs.self_attn(z, is_global_attn=False, **masks)[0] for z in (x, y))
        seen = (before != after).any(-1)[0]
        result.equal("windows of the encoder", seen, (torch.arange(24) - 12).abs() <= layer.window // 2)
    return result


@proof("bigbird_pegasus")
def bigbird_pegasus(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: learned tables added to the embeddings")
    config = config_of(model_type, **STACKS, max_position_embeddings=16, attention_type="original_full")
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 12))
    for side in ("encoder", "decoder"):
        inputs = {"input_ids": text, "decoder_input_ids": text}
        added(result, spec[side], model, f"{side}.layers.0", posenc.Positions.arange(2, 12), inputs)
    return result
