"""Perception Encoders for audio and video: RoPE with interleaved pairs over frames."""

from __future__ import annotations

from posenc.dialects.family import family, head_width, parts
from posenc.dialects.keys import Keys
from posenc.dialects.patches import tower
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec

COUNTED = "frames from 1; the class vector before them is at 0"


@family("pe_audio_encoder", "pe_video_encoder", "pe_audio_video_encoder")
def pe_audio_encoder(keys: Keys) -> PositionSpec:
    """All of a head turns, in 2 × 2 matrices; the encoder of both has one of each kind beneath it."""
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, layout="interleaved")
    below = parts(keys, "audio_config", "video_config") if keys.family == "pe_audio_video_encoder" else ()
    if keys.family == "pe_video_encoder":
        keys.note("vision_config", "makes one vector of each frame, before positions enter; not read here")
    return tower(
        keys,
        [use] if use else [],
        length=keys.whole("max_position_embeddings"),
        d_head=d_head,
        parts=below,
        coordinates=COUNTED,
    )
