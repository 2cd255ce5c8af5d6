"""posenc.configs.families.speech_to_text, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.silenced import added_by


@proof("speech_to_text")
def speech_to_text(model_type: str) -> Proof:
    result = Proof(model_type, "fairseq's sinusoids for frames and text; padding gets zero")
    for padding in (1, 2, 0):
        config = config_of(
            model_type,
            d_model=64,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            conv_channels=8,
            input_feat_per_channel=8,
            pad_token_id=padding,
            decoder_start_token_id=4,
            hidden_size=None,
            num_hidden_layers=None,
            num_attention_heads=None,
        )
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
            assert [finding.key for finding in spec.remarks if finding.grade == "error"] == ["pad_token_id"]
        else:
            added_by(
                result,
                spec["encoder"],
                model,
                "encoder.embed_positions",
                "encoder.layers.0",
                at,
                inputs,
                8.0,
                "frames with positions",
            )
        at = posenc.Positions.from_mask(text != padding)
        added_by(
            result,
            spec["decoder"],
            model,
            "decoder.embed_positions",
            "decoder.layers.0",
            at,
            inputs,
            8.0,
            "text with positions, padded",
        )
    return result
