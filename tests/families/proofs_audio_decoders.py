"""What decoders of speech and music add to their embeddings."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import added
from families.harness import (
    CONFIG_MAPPING,
    Proof,
    at_of,
    build,
    config_of,
    modeling,
    module_named,
    proof,
    spec_of,
    tokens,
)
from families.silenced import added_by

AT = posenc.Positions.arange(2, 12)


@proof("canary_decoder")
def _(model_type: str) -> Proof:
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
    added_by(result, spec, model, "pos_emb", "embedding_layernorm", at_of(ids), inputs, 8.0)
    return result


@proof("cohere_asr")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table added to the embeddings; a conformer with Transformer-XL's terms")
    inner = config_of("parakeet_encoder", num_hidden_layers=1, num_mel_bins=16, subsampling_conv_channels=8,
                      num_key_value_heads=4).to_dict()  # fmt: skip
    config = config_of(model_type, num_hidden_layers=2, num_key_value_heads=4, max_position_embeddings=40,
                       encoder_config=inner)  # fmt: skip
    whole, spec = build(config, attention=None), spec_of(config)
    decoder = whole.decoder
    inputs = {"input_ids": tokens((2, 12)), "encoder_hidden_states": torch.randn(2, 3, 64)}
    added(result, spec["decoder"], decoder, "embedding_layernorm", AT, inputs)
    assert len(spec["decoder"].layers) == len(decoder.layers)
    result.equal("encoder_config is parakeet_encoder", whole.encoder.config.model_type, spec["encoder_config"].family)
    return result


@proof("musicgen_decoder", "musicgen_melody_decoder")
def _(model_type: str) -> Proof:
    melody = model_type == "musicgen_melody_decoder"
    result = Proof(model_type, "sinusoids, cos | sin, added to the sum of all codebooks"
                   + ", and to melody and text before it" * melody)  # fmt: skip
    name = "MusicgenMelodyDecoder" if melody else "MusicgenDecoder"
    for width in (64, 62):
        config = config_of(model_type, hidden_size=width, num_attention_heads=2, num_hidden_layers=2, ffn_dim=16,
                           num_codebooks=2, max_position_embeddings=40)  # fmt: skip
        model, spec = build(config, name, attention=None), spec_of(config)
        inputs: dict[str, Any] = {"input_ids": tokens((2 * 2, 12))}
        before = 3 if melody else 0
        if melody:
            inputs["encoder_hidden_states"] = torch.randn(2, before, width)
        at = posenc.Positions.arange(2, 12 + before)
        added_by(result, spec, model, "embed_positions", "layers.0", at, inputs, 12.0)
        assert len(spec.layers) == len(model.layers)
    return result


@proof("speech_to_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "fairseq's sinusoids for frames and text; padding gets none")
    for padding in (1, 2, 0):
        config = config_of(model_type, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16, conv_channels=8,
                           input_feat_per_channel=8, pad_token_id=padding, decoder_start_token_id=4, hidden_size=None,
                           num_hidden_layers=None, num_attention_heads=None)  # fmt: skip
        model, spec = build(config, attention=None), spec_of(config)
        real = torch.ones(2, 48, dtype=torch.long)
        real[1, 32:] = 0
        text = torch.full((2, 6), padding)
        text[0], text[1, :4] = torch.arange(5, 11), torch.arange(5, 9)
        inputs = {"input_features": torch.randn(2, 48, 8), "attention_mask": real, "decoder_input_ids": text}
        frames = torch.arange(12)[None] < torch.tensor([12, 8])[:, None]
        at = posenc.Positions.from_mask(frames) if padding == 1 else posenc.Positions.arange(2, 12)
        if padding == 0:  # what they call padding is sound
            assert not spec["encoder"].layers[0].uses
            own = model.encoder.embed_positions((~frames).long())
            result.equal("nothing for frames where pad_token_id is 0", own[frames], torch.zeros_like(own[frames]))
            assert [finding.key for finding in spec.findings if finding.grade == "error"] == ["pad_token_id"]
        else:
            added_by(result, spec["encoder"], model, "encoder.embed_positions", "encoder.layers.0", at, inputs, 8.0,
                     "frames with positions")  # fmt: skip
        at = posenc.Positions.from_mask(text != padding)
        added_by(result, spec["decoder"], model, "decoder.embed_positions", "decoder.layers.0", at, inputs, 8.0,
                 "text with positions, padded")  # fmt: skip
    return result


@proof("bark")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table in each of three models; the third sees later tokens too")
    module = modeling(model_type)
    sizes = {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "block_size": 40, "input_vocab_size": 32,
             "output_vocab_size": 32}  # fmt: skip
    names = ("semantic", "coarse_acoustics", "fine_acoustics")
    config = CONFIG_MAPPING[model_type](**{f"{name}_config": sizes for name in names})
    spec = spec_of(config)
    assert [part.part for part in spec.parts] == [*(f"{name}_config" for name in names), "codec_config"]
    torch.manual_seed(0)
    whole = module.BarkModel(config).eval()
    result.equal("codec_config is encodec", whole.codec_model.config.model_type, spec["codec_config"].family)
    ids = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
    for name, part in zip(("semantic", "coarse_acoustics", "fine_acoustics"), spec.parts, strict=False):
        model = module_named(whole, name)
        inputs: dict[str, Any] = {"input_ids": tokens((2, 4)), "position_ids": ids}
        if name == "fine_acoustics":
            inputs = {"codebook_idx": 2, "input_ids": tokens((2, 4, 8)), "position_ids": ids}
        added(result, part, model, "layers.0.layernorm_1", at_of(ids), inputs)
        assert len(model.layers) == len(part.layers)
        assert all(layer.causal == block.attn.is_causal for layer, block in zip(part.layers, model.layers, strict=True))
    return result
