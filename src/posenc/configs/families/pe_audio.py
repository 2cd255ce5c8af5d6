"""Perception Encoders for audio and video: RoPE with interleaved pairs over frames."""

from __future__ import annotations

from posenc.configs.family import family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.patches import tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec

COUNTED = say("frames from 1; the class token before them is at 0")


@family("pe_audio_encoder", "pe_video_encoder", "pe_audio_video_encoder")
def pe_audio_encoder(keys: Keys) -> PositionSpec:
    """The whole head rotates. The audio-video encoder has one audio and one video encoder inside."""
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, layout="interleaved")
    below = parts(keys, "audio_config", "video_config") if keys.family == "pe_audio_video_encoder" else ()
    if keys.family == "pe_video_encoder":
        keys.note("vision_config", say("turns each frame into one vector before positions are added; not read here"))
    return tower(
        keys,
        [use] if use else [],
        length=keys.whole("max_position_embeddings"),
        d_head=d_head,
        parts=below,
        coordinates=COUNTED,
    )
