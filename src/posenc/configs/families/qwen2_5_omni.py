"""Qwen2.5-Omni, Qwen3-Omni and Qwen3-ASR: audio encoders, speech decoders and the models around them."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.family import decoder, family, head_width, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import clauses


@family("qwen2_5_omni_audio_encoder", "qwen3_omni_moe_audio_encoder")
def qwen2_5_omni_audio_encoder(keys: Keys) -> PositionSpec:
    return _encoder(keys, "max_source_positions")


@family("qwen3_asr_encoder")
def qwen3_asr_encoder(keys: Keys) -> PositionSpec:
    return _encoder(keys, "max_position_embeddings")


def _encoder(keys: Keys, length: str) -> PositionSpec:
    """Sinusoids [sin | cos], last frequency 1/10000; attention within the chunk, or within n_window_infer frames if set."""
    rows, window, d_model = keys.whole(length), 2 * keys.whole("n_window"), keys.whole("d_model")
    said_by = (("d_model", keys.said_by("d_model")), ("layout", "constant of the code"), ("base", "constant of the code"))
    added = Use(
        "encodings.sinusoidal.Sinusoidal", (("d_model", d_model), ("layout", "sin_cos"), ("denominator", "d/2-1")), said_by
    )
    attended = keys.whole("n_window_infer", window)
    keys.note(
        "n_window",
        say(
            "a chunk is {window} mel frames, counted from 0; attention spans {attended} of them; the table has {rows} rows",
            window=window,
            attended=attended,
            rows=rows,
        ),
    )
    layers = [Layer((), "window_attention", causal=False)] * keys.whole("encoder_layers")
    where = say("0, 1, 2, … over frames after the convolutions, again from 0 in each chunk of 2·n_window mel frames")
    return stack_of(
        keys, layers, embedding=[added], width="d_model", heads="encoder_attention_heads", length=rows, coordinates=where
    )


@family("qwen2_5_omni_dit")
def qwen2_5_omni_dit(keys: Keys) -> PositionSpec:
    """Interleaved pairs in, half pairs out, in the first head only. Frames see their block of block_size frames, and in the
    layers that the file names the block before or after."""
    use = rope(keys, d_head=head_width(keys), layout="interleaved", returns="half")
    assert use is not None
    use = replace(
        use,
        encoding="encodings.of_families.first_heads.FirstHeadsRoPE",
        arguments=(*use.arguments, ("turning_heads", 1)),
        said_by=(*use.said_by, ("turning_heads", "constant of the code")),
    )
    keys.warning("rope_parameters", say("only the first head is rotated, an error of training that the code keeps"))
    ahead, back = keys.numbers("look_ahead_layers", (10,)), keys.numbers("look_backward_layers", (0, 20))
    size = keys.whole("block_size", 24)
    keys.note(
        "block_size",
        say(
            "a frame sees its block of {size} frames, in layers {ahead} the next one too, in layers {back} the one before",
            size=size,
            ahead=list(ahead),
            back=list(back),
        ),
    )
    layers = [Layer((use,), "block_attention", causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, d_head=head_width(keys), coordinates=say("frames of sound, from 0"))


@family("qwen3_omni_moe_talker_code_predictor")
def qwen3_omni_moe_talker_code_predictor(keys: Keys) -> PositionSpec:
    """The tokens of one speech frame, counted from 0 in each frame."""
    count, window = keys.whole("num_hidden_layers"), keys.whole("sliding_window", None)
    first = keys.whole("max_window_layers", least=0)
    assumed = tuple("sliding_attention" if window and n >= first else "full_attention" for n in range(count))
    kinds = keys.names("layer_types", assumed, length=count)
    if "sliding_attention" in kinds:
        keys.error("layer_types", say("the code makes no mask for sliding layers and fails"))
    return decoder(
        keys, rope(keys, d_head=head_width(keys)), kinds=kinds, coordinates=say("0, 1, 2, … within one frame of speech")
    )


OMNI = say(
    "text and audio: (time, row, column) are equal and increase by one; an image or clip starts "
    "after everything before it, time in 1/position_id_per_seconds of a second; text continues "
    "after its largest coordinate"
)


@family("qwen2_5_omni")
def qwen2_5_omni(keys: Keys) -> PositionSpec:
    sections = parts(keys, "thinker_config", "talker_config", "token2wav_config")
    return PositionSpec(keys.family, parts=sections, coordinates=OMNI)


@family("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
def qwen2_5_omni_thinker(keys: Keys) -> PositionSpec:
    """Qwen2.5 rounds times down to whole numbers, Qwen3 does not."""
    keys.whole("position_id_per_seconds", 25)
    whole = keys.family == "qwen2_5_omni_thinker"
    if not whole:
        keys.note(
            "position_id_per_seconds",
            say("frames have fractional positions if their times are fractional, and so does the text after them"),
        )
    sections = parts(keys, "text_config", "vision_config", "audio_config")
    return PositionSpec(
        keys.family, parts=sections, coordinates=clauses(OMNI, *[say("times are rounded down to whole numbers")] * whole)
    )


@family("qwen2_5_omni_token2wav")
def qwen2_5_omni_token2wav(keys: Keys) -> PositionSpec:
    sections = parts(keys, "dit_config", "bigvgan_config")
    return PositionSpec(keys.family, parts=sections, coordinates=say("frames of sound, from 0"))


@family("qwen3_omni_moe")
def qwen3_omni_moe(keys: Keys) -> PositionSpec:
    """Sections for speech have no model_type; without them the classes use defaults that the file does not show."""
    types = {
        name: f"qwen3_omni_moe_{name.removesuffix('_config')}"
        for name in ("talker_config", "code2wav_config")
        if keys.has(name)
    }
    return PositionSpec(keys.family, parts=parts(keys, "thinker_config", **types), coordinates=OMNI)


@family("qwen3_omni_moe_talker")
def qwen3_omni_moe_talker(keys: Keys) -> PositionSpec:
    sections = parts(
        keys, text_config="qwen3_omni_moe_talker_text", code_predictor_config="qwen3_omni_moe_talker_code_predictor"
    )
    return PositionSpec(keys.family, parts=sections, coordinates=OMNI)


@family("qwen3_omni_moe_code2wav")
def qwen3_omni_moe_code2wav(keys: Keys) -> PositionSpec:
    """Half pairs; a window of sliding_window frames in every layer."""
    kinds = ["sliding_attention"] * keys.whole("num_hidden_layers")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)


@family("qwen3_asr")
def qwen3_asr(keys: Keys) -> PositionSpec:
    sections = parts(keys, "audio_config", text_config="qwen3")
    return PositionSpec(keys.family, parts=sections, coordinates=LIKE_TEXT)
