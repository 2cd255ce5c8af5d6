"""Speech decoders with Llama's RoPE: CSM, Higgs Audio v2, Pocket TTS."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import with_assumed
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("pocket_tts", "gradium_phonon_tts")
def pocket_tts(keys: Keys) -> PositionSpec:
    """As Llama; the sinusoids of the flow head encode diffusion time, not position."""
    return decoder(keys, rope(keys, d_head=head_width(keys)))


@family("higgs_audio_v2")
def higgs_audio_v2(keys: Keys) -> PositionSpec:
    keys = with_assumed(keys)
    return decoder(keys, rope(keys, d_head=head_width(keys)))


@family("csm")
def csm(keys: Keys) -> PositionSpec:
    """A position is one frame, all codebooks summed; the depth decoder counts the codebooks of a frame."""
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), coordinates=say("one for each frame or text token, from 0"))
    return replace(spec, parts=parts(keys, "depth_decoder_config", "codec_config"))


@family("csm_depth_decoder_model")
def csm_depth_decoder_model(keys: Keys) -> PositionSpec:
    where = say("codebooks of one frame, from 0 for the backbone's state; position_ids of the call are ignored")
    return decoder(keys, rope(keys, d_head=head_width(keys)), coordinates=where)
