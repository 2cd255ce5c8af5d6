"""posenc.configs.families.whisper, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.adding import added, entering
from families.harness import Proof, at_of, build, config_of, module_named, proof, spec_of, tokens
from families.silenced import added_by

SIZES: dict[str, Any] = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "num_mel_bins": 8,
    "max_source_positions": 20,
}

NONE = dict.fromkeys(
    ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
)

SOUND = torch.randn(2, 8, 40, generator=torch.Generator().manual_seed(0))


def sized(model_type: str, **more: Any) -> Any:
    loaded = config_of(model_type, **NONE)
    known = {*loaded.__dataclass_fields__, *(loaded.attribute_map or {})}
    return config_of(model_type, **NONE | {name: value for name, value in (SIZES | more).items() if name in known})


@proof("whisper")
def whisper(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids, sin | cos, added to frames, stored as a table; a learned table for text")
    config = sized(model_type, max_target_positions=40, decoder_start_token_id=1)
    model, spec = build(config, attention=None), spec_of(config)
    at, ids = posenc.Positions.arange(2, 20), torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
    inputs = {"input_features": SOUND, "decoder_input_ids": tokens((2, 4)), "decoder_position_ids": ids}
    added_by(
        result,
        spec["encoder"],
        model,
        "encoder.embed_positions",
        "encoder.layers.0",
        at,
        inputs,
        20.0,
        "frames with positions",
    )
    added(result, spec["decoder"], model, "decoder.layers.0", at_of(ids), inputs, what="text with positions")
    assert [len(part.layers) for part in spec.parts] == [len(model.encoder.layers), len(model.decoder.layers)]
    assert spec["encoder"].trained_length == 20
    return result


@proof("qwen2_audio_encoder", "voxtral_encoder", "audioflamingo3_encoder", "moss_transcribe_diarize_audio")
def qwen2_audio_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "a stored table added to frames")
    config = sized(model_type)
    model, spec = build(config, attention=None), spec_of(config)
    inputs: dict[str, Any] = {"input_features": SOUND}
    if model_type == "audioflamingo3_encoder":
        inputs["input_features_mask"] = torch.ones(2, 40, dtype=torch.long)
    added(result, spec, model, "layers.0", posenc.Positions.arange(2, 20), inputs)
    assert len(spec.layers) == len(model.layers)
    return result


@proof("fun_asr_nano_encoder")
def fun_asr_nano_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids, sin | cos, counted from 1, added to stacked frames")
    config = config_of(
        model_type, num_mel_bins=8, num_stacked_frames=3, max_position_embeddings=40, num_timestamp_prediction_layers=1
    )
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {
        "input_features": torch.randn(2, 39, 24, generator=torch.Generator().manual_seed(0)),
        "input_features_mask": torch.ones(2, 39, dtype=torch.long),
    }
    added_by(result, spec, model, "position_embeddings", "layers.0", posenc.Positions.arange(2, 39), inputs, 4.0)
    assert entering(model, "layers.0", inputs).shape[-1] == 24
    assert spec.trained_length == 39
    return result


@proof("fun_asr_nano")
def fun_asr_nano(model_type: str) -> Proof:
    result = Proof(model_type, "an encoder with sinusoids, two layers without positions, a rotary language model")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = build(config, attention=None)
    for part, ending in (("audio_config", "audio_tower"), ("text_config", "language_model")):
        result.equal(part, module_named(model, ending).config.model_type, spec[part].family)
    adaptor = [m for m in model.modules() if type(m).__name__ == "FunAsrNanoEncoderLayer" and m.self_attn.fsmn is None]
    result.equal("layers between them", len(adaptor), len(spec["adaptor_config"].layers))
    assert not any(layer.uses for layer in spec["adaptor_config"].layers)
    return result
