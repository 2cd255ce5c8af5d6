"""Mimi, Moshi and Voxtral Realtime: causal RoPE over codec frames and codec tokens, half pairs, whole head."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, SLIDING
from posenc.configs.spec import PositionSpec

FRAMES = say("0, 1, 2, … over frames after the convolutions")


@family(
    "mimi_encoder",
    "mimi_decoder",
    "voxtral_realtime_encoder",
    "pocket_tts_audio_tokenizer_encoder",
    "pocket_tts_audio_tokenizer_decoder",
)
def mimi_encoder(keys: Keys) -> PositionSpec:
    """The same window in all layers."""
    return _frames(keys)


def _frames(keys: Keys) -> PositionSpec:
    kinds = [SLIDING if keys.whole("sliding_window", None) else FULL] * keys.whole("num_hidden_layers")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds, coordinates=FRAMES)


@family("voxtral_realtime_text")
def voxtral_realtime_text(keys: Keys) -> PositionSpec:
    kinds = [SLIDING if keys.whole("sliding_window", None) else FULL] * keys.whole("num_hidden_layers")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)


@family("mimi", "pocket_tts_audio_tokenizer")
def mimi(keys: Keys) -> PositionSpec:
    """Two transformers with the same settings. If encoder_config or decoder_config is null, it does not exist."""
    there = [half for half in ("encoder", "decoder") if keys.data.get(f"{half}_config", half) is not None]
    frames = _frames(keys)
    return replace(frames, layers=(), parts=tuple(frames.with_part(half) for half in there))


@family("moshi", "kyutai_speech_to_text")
def moshi(keys: Keys) -> PositionSpec:
    """Masks are fully causal, but caches built from the configuration keep sliding_window tokens."""
    window = keys.whole("sliding_window", None)
    if window is not None:
        keys.warning(
            "sliding_window",
            say(
                "masks of a forward pass are fully causal, but caches built from this configuration keep "
                "{window} tokens: generation has a window, a forward pass has none",
                window=window,
            ),
        )
    use = rope(keys, d_head=head_width(keys))
    inside = ("audio_encoder_config", "depth_decoder_config") if keys.family == "moshi" else ("codec_config",)
    spec = decoder(keys, use, kinds=[FULL] * keys.whole("num_hidden_layers"))
    return replace(spec, parts=parts(keys, *(name for name in inside if keys.data.get(name, name) is not None)))


@family("moshi_depth")
def moshi_depth(keys: Keys) -> PositionSpec:
    """No positions in attention: each codebook, which is a position here, has its own weights."""
    keys.get("sliding_window", None)
    why = say("0, 1, 2, … over codebooks, which select the weights of every layer; attention itself has no positions")
    return decoder(keys, None, kinds=[FULL] * keys.whole("num_hidden_layers"), coordinates=why)
