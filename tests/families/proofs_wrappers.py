"""Models put together from others, and the text models that only live in them."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import (
    IDS,
    Proof,
    at_of,
    build,
    calls,
    config_of,
    frequencies,
    made_of,
    modeling,
    proof,
    spec_of,
    tokens,
)
from families.turning import LINEAR, LLAMA3, SEEN, YARN, also, hidden, turned
from posenc.dialects import read_config

GEMMA: dict[str, Any] = {"num_experts": 4, "top_k_experts": 2, "sliding_window": 4, "head_dim": 16, "global_head_dim": 24}
BOTH = {"text_config": "language_model", "vision_config": "vision_tower"}
INSIDE = {"text_config": "TextModel", "vision_config": "VisionModel"}
MADE: dict[str, tuple[str, dict[str, str]]] = {
    "llama4": ("Llama 4's text model and its tower, which count each for themselves",
               INSIDE),
    "muse_glimmer": ("a rotary text model and a windowed tower", INSIDE),
    "muse_spark": ("a rotary text model, a windowed tower, and convolutions over audio",
                   {"text_config": "TextModel", "vision_config": "VisionModel", "audio_config": "AudioModel"}),
    "step3p7": ("a rotary text model and a tower, which count each for themselves",
                INSIDE),
    "inkling2": ("a bank of distance profiles in the text model, and a rotary tower", BOTH),
    "inkling_mm_model": ("a bank of distance profiles in the text model; images and audio come without positions",
                         {"text_config": "TextModel", "vision_config": "VisionModel", "audio_config": "AudioModel"}),
    "nemotron3_diarization": ("a rotary encoder of audio frames", {"audio_config": "audio_tower"}),
    "diffusion_gemma": ("Gemma 4's text model twice, reading and writing, and its tower",
                        INSIDE),
}  # fmt: skip


@proof(*MADE)
def _(model_type: str) -> Proof:
    does, parts = MADE[model_type]
    config = None
    if model_type == "diffusion_gemma":  # its class gives no number of experts
        config = config_of(model_type, text_config=config_of("diffusion_gemma_text", **GEMMA).to_dict())
    return made_of(model_type, does, parts, config)


@proof("step3p5")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; each kind of layer has its base and its part of the head")
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    sizes: dict[str, Any] = {"head_dim": 24, "sliding_window": 4, "layer_types": kinds, "n_routed_experts": 4,
                             "share_expert_dim": 16, "mlp_layer_types": ["dense"] * 4}  # fmt: skip
    both = {"full_attention": YARN | {"partial_rotary_factor": 0.5}, "sliding_attention": LINEAR}
    model = turned(result, model_class="Step3p7TextModel", rope_parameters=both, **sizes)
    for parameters in (None, {"full_attention": LLAMA3, "sliding_attention": {"rope_type": "default", "rope_theta": 5.0,
                                                                             "partial_rotary_factor": 0.25}}):  # fmt: skip
        also(result, model, rope_parameters=parameters, **sizes)
    also(result, model, rope_theta=[1000.0, 50.0, 50.0, 1000.0], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
         rope_scaling=LLAMA3 | {"rope_theta": 1000.0}, **sizes)  # fmt: skip
    return result


@proof("hunyuan_vl_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "XD-RoPE: channels, not pairs, are dealt out to the axes; normalised afterwards")
    alpha = {"rope_type": "xdrope", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0, "mrope_section": [4, 2, 3, 3]}
    config = config_of(model_type, rope_parameters=alpha, head_dim=24, num_hidden_layers=2)
    model, spec = build(config, "HunYuanVLTextModel"), spec_of(config)
    entered: dict[str, list[torch.Tensor]] = {"query": [], "key": []}
    for layer in model.layers:
        for side, norm in (("query", layer.self_attn.query_layernorm), ("key", layer.self_attn.key_layernorm)):
            norm.register_forward_pre_hook(lambda module, inputs, side=side: entered[side].append(inputs[0]))
    far = torch.stack([IDS, IDS.flip(1), IDS % 97, IDS.flip(0)])
    for ids in (torch.zeros_like(far), far):
        calls(model, input_ids=tokens(IDS.shape), position_ids=ids)
    for number in range(2):
        encoding = spec.encoding(number, arithmetic="float32")
        for side in ("query", "key"):
            before, after = entered[side][number], entered[side][2 + number]
            got = encoding.rotate(before, at_of(far), side)
            result.close("queries and keys of every layer, each axis to 131071", got, after)
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    for parameters in (alpha, {**LINEAR, "mrope_section": [4, 4, 4]}, {**YARN, "mrope_section": [6, 6]}):
        other = config_of(model_type, rope_parameters=parameters, head_dim=24, num_hidden_layers=1)
        own = modeling(model_type).HunYuanVLTextRotaryEmbedding(other).inv_freq if hasattr(
            modeling(model_type), "HunYuanVLTextRotaryEmbedding") else type(model.rotary_emb)(other).inv_freq  # fmt: skip
        mine = spec_of(other).encoding(0, arithmetic="float32").frequencies.values
        result.equal("12 frequencies, each for two channels", torch.tensor(mine), torch.cat([own, own]))
    return result


@proof("hunyuan_vl")
def _(model_type: str) -> Proof:
    section = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
    text = config_of("hunyuan_vl_text", rope_parameters=section, head_dim=128, num_hidden_layers=1).to_dict()
    config = config_of(model_type, text_config=text)
    result = made_of(model_type, "XD-RoPE over token, column, row and image, and a tower with a learned grid",
                     BOTH, config)  # fmt: skip
    with torch.device("meta"):
        model = build(config, "HunYuanVLModel", attention=None)
    merge = config.vision_config.spatial_merge_size
    grid = torch.tensor([[1, 2 * merge, 3 * merge]])
    image = (3 + 1) * 2  # two rows of three, each ended by a newline
    kinds = torch.tensor([[0] * 3 + [1] * image + [0] * 2])
    ids, _ = model.get_rope_index(torch.full_like(kinds, 5), mm_token_type_ids=kinds, image_grid_thw=grid)
    expected = torch.arange(kinds.shape[1]).repeat(4, 1)
    columns = [x for _ in range(2) for x in range(4)]
    rows = [y for y in range(2) for _ in range(4)]
    expected[1, 3 : 3 + image], expected[2, 3 : 3 + image] = torch.tensor(columns), torch.tensor(rows)
    expected[3, 3 : 3 + image] = 0
    result.equal("how tokens are numbered", ids[:, 0], expected)
    old = {
        "model_type": "hunyuan_vl",
        "vision_config": config.vision_config.to_dict(),
        **text,
    }
    old["model_type"] = "hunyuan_vl"
    assert read_config(old)["text_config"].layers == spec_of(config)["text_config"].layers
    return result


@proof("nemotron3_diarization_audio")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, over frames, looking both ways")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "num_key_value_heads": 4}
    config = config_of(model_type, rope_parameters=YARN, **sizes)
    from families.proofs_audio_codecs import over_frames

    model = build(config, "Nemotron3DiarizationAudioModel")
    over_frames(result, model, spec_of(config), "inputs_embeds")
    for parameters in (None, LINEAR | {"partial_rotary_factor": 0.5}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("muse_glimmer_assistant")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; queries are the last of the tokens whose keys there are")
    sizes: dict[str, Any] = {"num_hidden_layers": 2, "head_dim": 24, "target_layer_ids": [1, 3], "block_size": 3}
    config = config_of(model_type, rope_parameters=YARN, **sizes)
    model, spec = build(config), spec_of(config)
    torch.manual_seed(0)
    context, block = torch.randn(2, 5, 128), torch.randn(2, 3, 64)
    inputs = {"noise_embeds": block, "context_hidden_states": context}
    zero, moved = (calls(model, fixed=False, **inputs, position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    encoding = spec.encoding(0, arithmetic="float32")
    scale = float(encoding.frequencies.cos_sin_scale)
    before, after = zero[0], moved[0]  # the first layer: later ones see what it makes of positions
    for side, x0, x, at in (("query", before.q, after.q, IDS[:, 5:]), ("key", before.k, after.k, IDS)):
        got = encoding.rotate((x0.double() / scale).float(), posenc.Positions.at(at), side)
        result.close("queries and keys at positions to 131071", got, x, 2.0)  # the unrotated ones were divided, and rounded
    assert len(moved) == len(spec.layers)
    frequencies(result, model.rotary_emb, spec)
    for parameters in (None, LINEAR):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("diffusion_gemma_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; full layers with wider heads, of which a part turns (proportional)")
    sizes: dict[str, Any] = GEMMA | {"num_hidden_layers": 7}
    turned(result, model_class="DiffusionGemmaEncoderTextModel", **sizes)
    both = {"sliding_attention": YARN, "full_attention": LLAMA3}
    turned(result, model_class="DiffusionGemmaEncoderTextModel", rope_parameters=both, **sizes)
    return result
