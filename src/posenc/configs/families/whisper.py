"""Whisper and similar encoders: two convolutions halve the mel frames, then a table for 30 seconds is added."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.families.bert import learned_table
from posenc.configs.families.marian import sinusoid
from posenc.configs.family import family, parts, stack_of, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import Words

FRAMES = say("0, 1, 2, … over frames after the convolutions, which halve the mel frames; silence is counted")

STORED = say("the encoder's sinusoids are stored as a table: the code reads the checkpoint's values")


@family("whisper")
def whisper(keys: Keys) -> PositionSpec:
    """Sinusoids for frames, a learned table for text; always exactly `max_source_positions` frames."""
    frames = _exactly(keys)
    waves = sinusoid(keys, layout="sin_cos", denominator="d/2-1")
    keys.note("max_source_positions", STORED)
    words = learned_table(keys, "decoder.embed_positions.weight", rows="max_target_positions", width="d_model")
    both = two_stacks(keys, waves, words, length=None)
    encoder, decoder = both.parts
    sides = [(encoder, frames, FRAMES), (decoder, keys.whole("max_target_positions"), say("0, 1, 2, … along the text"))]
    parts = [_with(part, trained_length=length, coordinates=where) for part, length, where in sides]
    return _with(both, parts=tuple(parts))


@family("qwen2_audio_encoder", "voxtral_encoder", "audioflamingo3_encoder", "moss_transcribe_diarize_audio")
def qwen2_audio_encoder(keys: Keys) -> PositionSpec:
    """Whisper's encoder with a learned table instead of sinusoids."""
    frames = _exactly(keys)
    added = learned_table(keys, "embed_positions.weight", rows="max_source_positions", width="d_model")
    return _encoder(keys, added, layers="encoder_layers", width="d_model", heads="encoder_attention_heads", length=frames)


@family("fun_asr_nano_encoder")
def fun_asr_nano_encoder(keys: Keys) -> PositionSpec:
    """Counted from 1 over stacked mel frames, before any projection: the width is that of the input."""
    width = keys.whole("num_mel_bins", 80) * keys.whole("num_stacked_frames", 7)
    arguments = {"d_model": width, "layout": "sin_cos", "denominator": "d/2-1", "offset": 1}
    said_by = dict.fromkeys(arguments, "constant of the code") | {
        "d_model": f"{keys.said_by('num_mel_bins')} · {keys.said_by('num_stacked_frames')}"
    }
    waves = Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), tuple(said_by.items()))
    rows = keys.whole("max_position_embeddings")
    kernel = keys.whole("fsmn_kernel_size", 11)
    keys.note("max_position_embeddings", say("row p + 1 is read: {rows} frames at most", rows=rows - 1))
    keys.note(
        "fsmn_kernel_size",
        say("every layer adds a convolution of the values, {kernel} wide, which depends on order too", kernel=kernel),
    )
    return _encoder(
        keys,
        waves,
        layers="num_hidden_layers",
        width="hidden_size",
        heads="num_attention_heads",
        length=rows - 1,
        where=say("0, 1, 2, … over stacked mel frames"),
    )


def _with(spec: PositionSpec, **values: object) -> PositionSpec:
    return replace(spec, **values)  # type: ignore[arg-type]


def _exactly(keys: Keys) -> int:
    rows = int(keys.whole("max_source_positions"))
    keys.note(
        "max_source_positions", say("the whole table is added to exactly {rows} frames: any other length fails", rows=rows)
    )
    return rows


def _encoder(
    keys: Keys, added: Use, *, layers: str, width: str, heads: str, length: int, where: Words = FRAMES
) -> PositionSpec:
    stack = [Layer(causal=False)] * keys.whole(layers)
    return stack_of(keys, stack, embedding=[added], width=width, heads=heads, length=length, coordinates=where)


@family("fun_asr_nano")
def fun_asr_nano(keys: Keys) -> PositionSpec:
    """Two more layers between encoder and language model, without positions."""
    adaptor = Keys(keys.table("adaptor_config"), "", keys.where("adaptor_config"))
    count = adaptor.whole("num_hidden_layers", 2)
    between = PositionSpec(
        keys.family,
        part="adaptor_config",
        layers=(Layer((), "adaptor", causal=False),) * count,
        d_model=adaptor.whole("hidden_size", None),
        coordinates=say("none of its own: the encoder's"),
    )
    audio, text = parts(keys, "audio_config", "text_config")
    return PositionSpec(keys.family, parts=(audio, between, text), coordinates=LIKE_TEXT)
