"""Files of audio models that are silent, or spell as transformers 4 did: read as their classes complete them."""

from __future__ import annotations

from typing import Any

import pytest

from families.harness import CONFIG_MAPPING
from posenc.configs import read_config

SILENT: dict[str, list[dict[str, Any]]] = {
    "glmasr_encoder": [
        {},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_theta": 500.0},
        {"rope_theta": 500.0, "partial_rotary_factor": 0.25},
    ],
    "lasr_encoder": [{}, {"rope_theta": 500.0}],
    "nemotron3_5_transcribe_asr_audio": [{}, {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}],
    "pocket_tts_audio_tokenizer": [{}, {"rope_theta": 500.0}],
    "sew-d": [{}, {"share_att_key": False}],
    "wavlm": [{}],
    "speecht5": [{}],
    "whisper": [{}],
    "vits": [{}],
    "parakeet_encoder": [{}],
    "granite_speech_encoder": [{}],
    "granite_speech5_encoder": [{}],
    "time_series_transformer": [{"prediction_length": 6}],
    "patchtst": [{"context_length": 40, "patch_length": 8}],
}


@pytest.mark.parametrize(("model_type", "said"), [(name, said) for name, all_ in SILENT.items() for said in all_])
def test_silent_files_are_read_as_their_class_completes_them(model_type: str, said: dict[str, Any]):
    silent = read_config({"model_type": model_type} | said, defaults=True)
    completed = read_config(CONFIG_MAPPING[model_type](**said).to_dict(), defaults=True)
    for (_, mine), (_, theirs) in zip(silent.walk(), completed.walk(), strict=True):
        assert [(layer.kind, layer.window, layer.causal) for layer in mine.layers] == [
            (layer.kind, layer.window, layer.causal) for layer in theirs.layers
        ]
        assert [[use.arguments for use in layer.uses] for layer in mine.layers] == [
            [use.arguments for use in layer.uses] for layer in theirs.layers
        ]
