"""posenc.configs.families.glmasr, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Proof, build, config_of, frequencies, proof, spec_of
from families.hooked import turned_inside
from families.proofs_mimi import over_frames
from families.turning import LINEAR, YARN, allowed, also

SIZES: dict[str, Any] = {"num_hidden_layers": 2, "num_key_value_heads": 4}


@proof("nemotron3_5_transcribe_asr_audio")
def nemotron3_5_transcribe_asr_audio(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, half of a head, over frames, bidirectional")
    for parameters in (None, YARN, LINEAR | {"partial_rotary_factor": 0.25}):
        config = config_of(model_type, rope_parameters=parameters, **SIZES)
        model = build(config, "Nemotron3_5TranscribeAsrAudioModel")
        over_frames(result, model, spec_of(config), "inputs_embeds")
    return result


@proof("glmasr_encoder", "lasr_encoder", "nemotron3_5_transcribe_word_timestamp")
def glmasr_encoder(model_type: str) -> Proof:
    half = "" if model_type == "lasr_encoder" else ", half of a head"
    result = Proof(model_type, f"RoPE, half pairs{half}, over frames, bidirectional")
    kind, sizes, inputs = {
        "glmasr_encoder": ("GlmAsrEncoder", {"num_mel_bins": 16}, {"input_features": torch.randn(2, 16, 16)}),
        "lasr_encoder": (
            "LasrEncoder",
            {
                "num_mel_bins": 16,
                "subsampling_conv_channels": 8,
                "conv_kernel_size": 4,
                "subsampling_conv_kernel_size": 2,
                "subsampling_conv_stride": 2,
            },
            {"input_features": torch.randn(2, 32, 16)},
        ),
        "nemotron3_5_transcribe_word_timestamp": (
            "Nemotron3_5TranscribeWordTimestampModel",
            {"upsampling_factor": 2, "blank_token_id": 3},
            {"inputs_embeds": torch.randn(2, 4, 64)},
        ),
    }[model_type]
    for parameters in (None, YARN, LINEAR):
        config = config_of(model_type, rope_parameters=parameters, **SIZES, **sizes)
        model, spec = build(config, kind), spec_of(config)
        found = turned_inside(result, spec, model, model.rotary_emb, most=allowed(spec), softmax=True, **inputs)
        assert all(call.mask is None for call in found)
        assert not any(layer.causal for layer in spec.layers)
        frequencies(result, model.rotary_emb, spec)
    return result


@proof("nemotron3_diarization_audio")
def nemotron3_diarization_audio(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over frames, bidirectional")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "num_key_value_heads": 4}
    config = config_of(model_type, rope_parameters=YARN, **sizes)
    from families.proofs_mimi import over_frames

    model = build(config, "Nemotron3DiarizationAudioModel")
    over_frames(result, model, spec_of(config), "inputs_embeds")
    for parameters in (None, LINEAR | {"partial_rotary_factor": 0.5}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
