"""GLM-ASR, LASR and NVIDIA's diarization encoders: bidirectional RoPE over audio frames."""

from __future__ import annotations

from typing import Any

from posenc.configs.assumed import with_assumed
from posenc.configs.family import bidirectional, decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL
from posenc.configs.spec import PositionSpec


@family("nemotron3_diarization_audio")
def nemotron3_diarization_audio(keys: Keys) -> PositionSpec:
    """Half pairs; the whole head rotates unless partial_rotary_factor is set."""
    return _frames(keys, partial=True)


@family("glmasr_encoder")
def glmasr_encoder(keys: Keys) -> PositionSpec:
    """RoPE over half of each head, unless partial_rotary_factor is set."""
    return _frames(keys, partial=True, partial_default=0.5)


@family("nemotron3_5_transcribe_asr_audio", "nemotron3_5_transcribe_word_timestamp")
def nemotron3_5_transcribe_asr_audio(keys: Keys) -> PositionSpec:
    """RoPE over half of each head if the file has no rotary settings.

    Over the whole head if it has them without a fraction.
    """
    return _frames(with_assumed(keys), partial=True)


@family("lasr_encoder")
def lasr_encoder(keys: Keys) -> PositionSpec:
    return _frames(keys)


def _frames(keys: Keys, **options: Any) -> PositionSpec:
    use = rope(keys, d_head=head_width(keys), **options)
    kinds = [FULL] * keys.whole("num_hidden_layers")
    return bidirectional(decoder(keys, use, kinds=kinds, coordinates=say("0, 1, 2, … over frames after subsampling")))
