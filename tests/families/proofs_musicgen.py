"""posenc.configs.families.musicgen, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import added
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.silenced import added_by

AT = posenc.Positions.arange(2, 12)


@proof("canary_decoder")
def canary_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids, sin | cos, divided by √d, added to the embeddings")
    config = config_of(model_type, num_hidden_layers=2, num_key_value_heads=4, head_dim=16, max_position_embeddings=40)
    model, spec = build(config, "CanaryDecoder", attention=None), spec_of(config)
    memory = {"encoder_hidden_states": torch.randn(2, 3, 64)}
    added_by(result, spec, model, "pos_emb", "embedding_layernorm", AT, {"input_ids": tokens((2, 12))} | memory, 4.0)
    ids = torch.tensor([[5, 17, 38, 39]])
    inputs = {
        "input_ids": tokens((1, 4)),
        "position_ids": ids,
        "encoder_hidden_states": memory["encoder_hidden_states"][:1],
    }
    # The family's table is torch's exp and sin in fp32, which differ by processor: 7 and 9.6 roundings were seen.
    added_by(result, spec, model, "pos_emb", "embedding_layernorm", at_of(ids), inputs, 12.0)
    return result


@proof("cohere_asr")
def cohere_asr(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table added to the embeddings; a conformer with Transformer-XL's terms")
    inner = config_of(
        "parakeet_encoder", num_hidden_layers=1, num_mel_bins=16, subsampling_conv_channels=8, num_key_value_heads=4
    ).to_dict()
    config = config_of(
        model_type, num_hidden_layers=2, num_key_value_heads=4, max_position_embeddings=40, encoder_config=inner
    )
    whole, spec = build(config, attention=None), spec_of(config)
    decoder = whole.decoder
    inputs = {"input_ids": tokens((2, 12)), "encoder_hidden_states": torch.randn(2, 3, 64)}
    added(result, spec["decoder"], decoder, "embedding_layernorm", AT, inputs)
    assert len(spec["decoder"].layers) == len(decoder.layers)
    result.equal("encoder_config is parakeet_encoder", whole.encoder.config.model_type, spec["encoder_config"].family)
    return result


@proof("musicgen_decoder", "musicgen_melody_decoder")
def musicgen_decoder(model_type: str) -> Proof:
    melody = model_type == "musicgen_melody_decoder"
    result = Proof(
        model_type,
        "sinusoids, cos | sin, added to the sum of all codebooks" + ", and to melody and text before them" * melody,
    )
    name = "MusicgenMelodyDecoder" if melody else "MusicgenDecoder"
    for width in (64, 62):
        config = config_of(
            model_type,
            hidden_size=width,
            num_attention_heads=2,
            num_hidden_layers=2,
            ffn_dim=16,
            num_codebooks=2,
            max_position_embeddings=40,
        )
        model, spec = build(config, name, attention=None), spec_of(config)
        inputs: dict[str, Any] = {"input_ids": tokens((2 * 2, 12))}
        before = 3 if melody else 0
        if melody:
            inputs["encoder_hidden_states"] = torch.randn(2, before, width)
        at = posenc.Positions.arange(2, 12 + before)
        added_by(result, spec, model, "embed_positions", "layers.0", at, inputs, 12.0)
        assert len(spec.layers) == len(model.layers)
    return result
