"""posenc.configs.families.mimi, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    modeling,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.turning import LINEAR, LLAMA3, SEEN, YARN, allowed, also, by_kind, hidden, turned


def over_frames(result: Proof, model: torch.nn.Module, spec: Any, name: str) -> None:
    """A transformer that takes vectors under `name`: rotation at IDS, masks, frequencies."""
    frames = {
        count: torch.randn(2, count, 64, generator=torch.Generator().manual_seed(3)) for count in (IDS.shape[1], SEEN)
    }
    zero, moved = (calls(model, **{name: frames[IDS.shape[1]]}, position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers)
    same_rotation(result, spec, zero, moved, IDS, allowed(spec))
    hidden(result, spec, calls(model, **{name: frames[SEEN]}))
    by_kind(result, module_named(model, "rotary_emb"), spec)


SIZES: dict[str, Any] = {"num_hidden_layers": 2, "sliding_window": 4, "head_dim": 24}


@proof("mimi", "mimi_decoder", "mimi_encoder")
def mimi(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over frames, causal within a window")
    config = config_of(model_type, rope_parameters=YARN, codebook_dim=64, **SIZES)
    model = modeling(model_type).MimiTransformerModel(_probed(config)).eval()
    spec = spec_of(config)
    if model_type == "mimi":
        result.does += "; encoder and decoder alike"
        assert [part.part for part in spec.parts] == ["encoder", "decoder"]
        whole = build(
            config_of(model_type, rope_parameters=YARN, codebook_dim=64, upsample_groups=64, **SIZES), "MimiModel"
        )
        for part in ("encoder", "decoder"):
            over_frames(result, module_named(whole, f"{part}_transformer"), spec[part], "hidden_states")
        return result
    over_frames(result, model, spec, "hidden_states")
    for parameters in (None, LINEAR):
        also(result, model, rope_parameters=parameters, **SIZES)
    return result


def _probed(config: Any) -> Any:
    """The configuration of a module that is made by itself: its attention recorded, its weights the same in every run."""
    torch.manual_seed(0)
    config._attn_implementation = "probe"
    return config


@proof("voxtral_realtime_encoder")
def voxtral_realtime_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over frames, causal within a window")
    config = config_of(model_type, rope_parameters=YARN, num_key_value_heads=None, **SIZES)
    model = modeling(model_type).VoxtralRealtimeEncoder(_probed(config)).eval()
    over_frames(result, model, spec_of(config), "inputs_embeds")
    also(result, model, num_key_value_heads=None, **SIZES)
    return result


@proof("voxtral_realtime_text")
def voxtral_realtime_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, within a window")
    config = config_of(model_type, rope_parameters=YARN, **SIZES)
    model = modeling(model_type).VoxtralRealtimeTextModel(_probed(config)).eval()
    spec = spec_of(config)
    time = {"t_cond": torch.zeros(1, 64)}
    zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=i, **time) for i in (torch.zeros_like(IDS), IDS))
    same_rotation(result, spec, zero, moved, IDS, allowed(spec))
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN)), **time))
    by_kind(result, module_named(model, "rotary_emb"), spec)
    for parameters in (None, LLAMA3):
        also(result, model, rope_parameters=parameters, **SIZES)
    return result


@proof("moshi")
def moshi(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over tokens; Mimi for audio, and a depth decoder without positions")
    config = config_of(model_type, ffn_dim=64, audio_vocab_size=30, **SIZES)
    spec = spec_of(config)
    with torch.device("meta"):
        whole = modeling(model_type).MoshiForConditionalGeneration(config)
    for part, module in (("audio_encoder_config", whole.audio_encoder), ("depth_decoder_config", whole.depth_decoder)):
        result.equal(f"{part} is {spec[part].family}", spec[part].family, module.config.model_type)
    model = turned(result, model_class="MoshiModel", rope_parameters=YARN, ffn_dim=64, num_codebooks=2, **SIZES)
    also(result, model, rope_parameters=LINEAR, ffn_dim=64, **SIZES)
    return result


@proof("kyutai_speech_to_text")
def kyutai_speech_to_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over tokens; Mimi for audio")
    codec = config_of("mimi", codebook_dim=64, **SIZES).to_dict()
    sizes: dict[str, Any] = {"ffn_dim": 64, "num_codebooks": 2, "codec_config": codec, "audio_pad_token_id": 0, **SIZES}
    config = config_of(model_type, rope_parameters=YARN, **sizes)
    model, spec = build(config, "KyutaiSpeechToTextModel"), spec_of(config)
    ids = torch.randint(3, 30, (2, IDS.shape[1], 3), generator=torch.Generator().manual_seed(1))
    zero, moved = (calls(model, input_ids=ids, position_ids=at) for at in (torch.zeros_like(IDS), IDS))
    same_rotation(result, spec, zero, moved, IDS, allowed(spec))
    hidden(result, spec, calls(model, input_ids=torch.cat([ids, ids], 1)[:, :SEEN]))
    by_kind(result, module_named(model, "rotary_emb"), spec)
    assert spec["codec_config"].family == "mimi"
    return result


@proof("moshi_depth")
def moshi_depth(model_type: str) -> Proof:
    result = Proof(model_type, "no positions in attention: each codebook has weights of its own")
    config = config_of(model_type, ffn_dim=64, input_size=64, num_codebooks=8, audio_vocab_size=30, **SIZES)
    model, spec = modeling(model_type).MoshiDepthDecoder(_probed(config)).eval(), spec_of(config)
    inputs = {"input_ids": tokens((2, 8)), "last_hidden_state": torch.ones(2, 1, 64)}
    zero, moved = (calls(model, **inputs, position_ids=at) for at in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers)
    same_rotation(result, spec, zero, moved, IDS)
    return result


@proof("pocket_tts_audio_tokenizer", "pocket_tts_audio_tokenizer_encoder", "pocket_tts_audio_tokenizer_decoder")
def pocket_tts_audio_tokenizer(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over frames, causal within a window")
    for parameters in (None, YARN, LINEAR):
        config = config_of(model_type, rope_parameters=parameters, **SIZES)
        spec = spec_of(config)
        halves = list(spec.parts) if model_type == "pocket_tts_audio_tokenizer" else [spec]
        for half in halves:
            model = modeling(model_type).PocketTTSAudioTokenizerTransformerModel(_probed(config)).eval()
            over_frames(result, model, half, "hidden_states")
    if model_type == "pocket_tts_audio_tokenizer":
        result.does += "; encoder and decoder alike"
        assert [part.part for part in spec.parts] == ["encoder", "decoder"]
    return result
