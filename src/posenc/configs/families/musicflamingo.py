"""Music Flamingo: audio frames are rotated by their time before they enter the language model."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use

WHERE = say(
    "(seconds from the start, index of the window, index of the frame in its window); a frame "
    "lasts 4·audio_frame_step seconds; seconds count from the start of the clip"
)


@family("musicflamingo")
def musicflamingo(keys: Keys) -> PositionSpec:
    """rope_theta is both the base and the longest time."""
    sound = keys.data.get("audio_config")
    if isinstance(sound, dict) and sound.get("model_type") in (None, "musicflamingo_encoder"):
        keys.data["audio_config"] = sound | {"model_type": "audioflamingo3_encoder"}
    inside = parts(keys, "audio_config", "text_config")
    width = inside[0].d_model
    if width is None:
        raise ConfigError(f"{keys.where('audio_config')}.hidden_size: missing; as many channels turn as it says")
    silent = not (keys.has("rope_parameters") or keys.has("rope_scaling") or keys.has("rope_theta"))
    turning = rope(keys, d_head=width, partial=True, partial_default=0.2, base=1200.0 if silent else None)
    if turning is None or turning.rotation is None or turning.rotation.kind != "rotary":
        raise ConfigError(f"{keys.where('rope_parameters')}.rope_type: expected 'default'; the code makes no use of others")
    keys.number("audio_frame_step")
    longest = keys.number("max_position_embeddings", None)
    if longest is not None and longest != turning.rotation.base:
        keys.warning(
            "max_position_embeddings", say("the class replaces it by rope_theta={base:g}", base=turning.rotation.base)
        )
    keys.note(
        "rope_parameters.rope_theta",
        say(
            "it is the base of the frequencies, the largest number of windows, and the largest number of frames in a window"
        ),
    )
    origins = dict(turning.said_by)
    arguments = (("d_model", width), ("frequencies", turning.rotation), ("longest", turning.rotation.base))
    said_by = (("d_model", "audio_config.hidden_size"), ("base", origins["base"]), ("longest", origins["base"]))
    use = Use("encodings.of_families.timed_rotation.TimedRotation", arguments, said_by)
    times = PositionSpec(
        keys.family,
        part="audio_times",
        layers=(Layer((use,), "embedding", causal=False),),
        d_model=width,
        trained_length=int(turning.rotation.base),
        coordinates=WHERE,
    )
    return PositionSpec(keys.family, parts=(*inside, times))
