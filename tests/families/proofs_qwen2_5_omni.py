"""posenc.configs.families.qwen2_5_omni, compared with the models' own code in transformers."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    frequencies,
    modeling,
    module_named,
    proof,
    rotary,
    spec_of,
)
from families.proofs_composites import assembled
from posenc.configs import read_config


@proof("qwen2_5_omni_dit")
def qwen2_5_omni_dit(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE in the first head only, interleaved pairs in, half pairs out; attention among few blocks"
    )
    config = config_of(
        model_type, head_dim=16, num_hidden_layers=2, block_size=3, look_ahead_layers=[1], look_backward_layers=[0]
    )
    spec, module = spec_of(config), modeling(model_type)
    config._attn_implementation = "probe"
    attention, turning = module.DiTAttention(config).eval(), module.Qwen2_5OmniDiTRotaryEmbedding(config)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5], [3, 255, 4096, 8191, 65537, 131071]])
    x = torch.randn(2, 6, 64, generator=torch.Generator().manual_seed(3))
    moved = calls(attention, x, position_embeddings=turning(x, ids), fixed=False)[0]
    with torch.no_grad():
        q, k, v = (
            layer(moved_x).unflatten(-1, (4, 16)).transpose(1, 2)
            for moved_x, layer in ((x, attention.to_q), (x, attention.to_k), (x, attention.to_v))
        )
    encoding, at = spec.encoding(0, exact="model"), posenc.Positions.at(ids)
    for side, mine, theirs in (("query", q, moved.q), ("key", k, moved.k), ("value", v, moved.v)):
        result.close("queries, keys and values at positions to 131071", encoding.rotate(mine, at, side), theirs)
    frequencies(result, turning, spec)
    blocks = build(config, "Qwen2_5OmniToken2WavDiTModel").transformer_blocks
    assert len(blocks) == len(spec.layers)
    assert [(b.look_ahead_block, b.look_backward_block) for b in blocks] == [(0, 1), (1, 0)]
    return result


@proof("qwen3_omni_moe_talker_code_predictor")
def qwen3_omni_moe_talker_code_predictor(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, counted within a speech frame")
    config = config_of(model_type, head_dim=16)
    model, spec = build(config, "Qwen3OmniMoeTalkerCodePredictorModel"), spec_of(config)
    embeddings = torch.randn(*IDS.shape, 64, generator=torch.Generator().manual_seed(3))
    rotary(result, config, spec, model, inputs={"inputs_embeds": embeddings})
    frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("qwen3_asr")
def qwen3_asr(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "audio_config": "audio_tower"}
    return assembled(model_type, "a text model that counts frames of sound like words, and an encoder of sound", parts)[0]


@proof("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
def qwen2_5_omni_thinker(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "visual", "audio_config": "audio_tower"}
    result, _ = assembled(model_type, "text by M-RoPE beside towers for images and sound", parts)
    name = ("Qwen2_5Omni" if "2_5" in model_type else "Qwen3OmniMoe") + "PreTrainedModelForConditionalGeneration"
    own = getattr(modeling(model_type), name)
    said = SimpleNamespace(
        image_token_id=7,
        video_token_id=8,
        audio_token_id=9,
        vision_start_token_id=5,
        audio_start_token_id=6,
        position_id_per_seconds=25,
        seconds_per_chunk=2,
    )
    asked = SimpleNamespace(
        config=said, spatial_merge_size=2, get_llm_pos_ids_for_vision=lambda *a: own.get_llm_pos_ids_for_vision(None, *a)
    )
    image, clip = (1, 4, 6), (3, 4, 4)  # with a token before and after each, which counts as a word
    words = [1, 1, 5, *[7] * 6, 4, 1, 5, *[8] * 12, 4, 1]
    ids, _ = own.get_rope_index(
        asked,
        torch.tensor([words]),
        torch.tensor([image]),
        torch.tensor([clip]),
        torch.ones(1, len(words)),
        second_per_grids=torch.tensor([0.5]),
    )
    expected: list[tuple[float, ...]] = [(k, k, k) for k in range(3)] + [
        (3, 3 + y, 3 + x) for y in range(2) for x in range(3)
    ]
    start: float = 6  # after the largest coordinate of the image, 3 + 2
    expected += [(start + k,) * 3 for k in range(3)]
    start += 3
    times = [frame * 0.5 * 25 if "qwen3" in model_type else int(frame * 0.5 * 25) for frame in range(3)]
    expected += [(start + time, start + y, start + x) for time in times for y in range(2) for x in range(2)]
    start += times[-1] + 1
    expected += [(start + k,) * 3 for k in range(2)]
    result.equal(
        "(time, row, column) of words, an image, words, a clip, words",
        ids[:, 0].double(),
        torch.tensor(expected, dtype=torch.float64).T,
    )
    return result


@proof("qwen2_5_omni_token2wav")
def qwen2_5_omni_token2wav(model_type: str) -> Proof:
    parts = {"dit_config": "code2wav_dit_model", "bigvgan_config": "code2wav_bigvgan_model"}
    return assembled(
        model_type, "codes to sound: a diffusion transformer and convolutions", parts, "Qwen2_5OmniToken2WavModel"
    )[0]


@proof("qwen2_5_omni")
def qwen2_5_omni(model_type: str) -> Proof:
    parts = {"thinker_config": "thinker", "talker_config": "talker", "token2wav_config": "token2wav"}
    return assembled(model_type, "a thinker, a talker and a speech decoder", parts, "Qwen2_5OmniForConditionalGeneration")[
        0
    ]


@proof("qwen3_omni_moe")
def qwen3_omni_moe(model_type: str) -> Proof:
    """Its talker and decoder have no model type: the decoder is compared here, the talker's parts elsewhere."""
    result = Proof(model_type, "a thinker, a talker and a speech decoder (RoPE in windows)")
    rope = {"rope_type": "default", "rope_theta": 1e4}
    sizes = {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "num_hidden_layers": 2,
        "sliding_window": 4,
        "rope_parameters": rope,
    }
    talker_config = {"text_config": {"shared_expert_intermediate_size": 16}, "spatial_merge_size": 2}
    config = CONFIG_MAPPING[model_type](
        thinker_config={"text_config": {"head_dim": 128}}, talker_config=talker_config, code2wav_config=sizes
    )
    spec = read_config(config.to_dict(), defaults=True)
    assert [part.part for part in spec.parts] == ["thinker_config", "talker_config", "code2wav_config"]
    inner = config.code2wav_config
    model, decoder = build(inner, "Qwen3OmniMoeCode2WavTransformerModel"), spec["code2wav_config"]
    embeddings = torch.randn(*IDS.shape, 64, generator=torch.Generator().manual_seed(3))
    rotary(result, inner, decoder, model, inputs={"inputs_embeds": embeddings})
    frequencies(result, module_named(model, "rotary_emb"), decoder)
    talker = spec["talker_config"]
    with torch.device("meta"):
        whole = modeling(model_type).Qwen3OmniMoeForConditionalGeneration(config)
    for part, ending in (("text_config", "talker.model"), ("code_predictor_config", "talker.code_predictor")):
        result.equal(f"talker: {part}", module_named(whole, ending).config.model_type, talker[part].family)
    result.equal("thinker", module_named(whole, "thinker").config.model_type, spec["thinker_config"].family)
    return result
