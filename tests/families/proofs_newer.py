"""Model types of releases of transformers after the one that is pinned, compared with their own code.

Only where such a release is installed are there comparisons: make acceptance runs them in its target transformers-newest.
"""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import IDS, Proof, build, calls, config_of, made_of, modeling, proof, spec_of, tokens
from families.proofs_deepseek_v3 import BOTH, MAGNITUDE, ONE
from families.proofs_deepseek_v3 import turned as latent_turned
from families.proofs_deepseek_v32 import indexed
from families.proofs_hunyuan_vl import embedded
from families.proofs_inkling import SIZES as INKLING
from families.proofs_inkling import same_bias
from families.proofs_qwen2_vl import IDS as THREE_AXES
from families.proofs_qwen2_vl import plain
from families.proofs_qwen2_vl import turned as turned_by_three
from families.proofs_wav2vec2 import REAL, drawn, frames, sized
from families.silenced import added_by
from families.turning import FULL, LINEAR, LLAMA3, SLIDING, YARN, also, turned
from posenc.configs import read_config

NO_POSITIONS = {
    "apertus1p5_vision_tokenizer": "convolutions, and attention without order among the cells of an image",
    "wavtokenizer": "convolutions and recurrent layers, and attention without order among frames",
    "wavtokenizer_encoder": "convolutions and recurrent layers",
}
LATENT = {"qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 10, "kv_lora_rank": 16, "q_lora_rank": 24}


@proof("exaone", "apertus1p5_text")
def exaone(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer")
    model = turned(result)
    for parameters in (LLAMA3, YARN, LINEAR):
        also(result, model, rope_parameters=parameters)
    return result


@proof("sarvam_moe")
def sarvam_moe(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer")
    model = turned(result, head_dim=24)
    also(result, model, head_dim=24, rope_parameters=LLAMA3 | {"partial_rotary_factor": 0.5})
    also(result, model, head_dim=24, rope_parameters=YARN)
    return result


@proof("sarvam_mla")
def sarvam_mla(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: last channels, interleaved pairs in, half pairs out")
    latent_turned(result)
    for scaled in (BOTH, ONE, MAGNITUDE):
        latent_turned(result, num_hidden_layers=1, rope_parameters=scaled)
    published = {
        "model_type": model_type,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "head_dim": 576,
        "rope_theta": 10000.0,
        "max_position_embeddings": 131072,
        "rope_scaling": {
            "type": "deepseek_yarn",
            "factor": 40.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32,
            "beta_slow": 1,
        },
    }
    config = type(config_of(model_type))(**{k: v for k, v in published.items() if k != "model_type"})
    encoding = read_config(published).encoding(0, exact="model")
    own = modeling("deepseek_v3").DeepseekV3RotaryEmbedding(config)
    result.equal("frequencies of a published file", torch.tensor(encoding.frequencies.values), own.inv_freq)
    return result


@proof("lara_mini")
def lara_mini(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, in sliding layers; full layers have no positions, others are recurrent")
    sizes = {"num_hidden_layers": 6, "sliding_window": 4, "head_dim": 16, "linear_num_key_heads": 2}
    sizes |= {"linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
    model = turned(result, **sizes)
    turned(result, **{**sizes, "num_hidden_layers": 3}, layer_types=[FULL, "linear_attention", SLIDING])
    for parameters in (YARN, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("dory")
def dory(model_type: str) -> Proof:
    """The file as it is saved counts attention and MLP apart. With one loop every layer attends once."""
    result = Proof(model_type, "RoPE, half pairs; sliding and full layers with their own bases; layers in loops")
    sizes: dict[str, Any] = {"num_hidden_layers": 5, "n_input_layers": 1, "n_output_layers": 1, "n_recurrent_layers": 3}
    sizes |= {"sliding_window": 4, "head_dim": 16, "n_recurrent_loops": 1}
    sizes["initializer_range"] = 2.0**-6  # queries are then multiplied by 16, which does not round
    scaled = {SLIDING: LINEAR, FULL: YARN}
    model = turned(result, **sizes)
    turned(result, **sizes, rope_parameters=scaled, layer_types=[FULL, SLIDING, SLIDING, FULL, FULL])
    also(result, model, **sizes, rope_parameters=scaled)
    config = config_of(model_type, **{**sizes, "n_recurrent_loops": 3})
    spec, found = spec_of(config), calls(build(config), input_ids=tokens(IDS.shape), position_ids=IDS)
    result.equal("layers of three loops", [call.layer for call in found], [0, *[1, 2, 3] * 3, 4])
    assert len(spec.layers) == 5
    for call, again in zip(found[1:4], found[7:10], strict=True):
        result.equal("the same rotation in every loop", call.q, again.q)
    return result


@proof("hy_v4_vl_text")
def hy_v4_vl_text(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention and indexer: last channels, interleaved pairs; time, row, column in turn")
    sizes = LATENT | {"num_key_value_heads": 4, "num_hidden_layers": 3, "index_head_dim": 12, "index_n_heads": 3}
    sizes |= {"index_topk": 4, "rope_parameters": plain((2, 1, 1))}
    turned_by_three(result, "HYV4VLTextModel", **sizes)
    scaled = BOTH | {"mrope_section": [2, 1, 1]}
    turned_by_three(result, "HYV4VLTextModel", 2.0, **sizes | {"rope_parameters": scaled})
    assert THREE_AXES.shape[0] == 3
    indexed(result, scaled_inside=False, num_hidden_layers=6, rope_parameters=plain((2, 1, 1)))
    return result


@proof("hy_v4_vl_vision")
def hy_v4_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "a learned grid (bilinear, a tenth of a patch more), its first row unused; no rotation")
    embedded(result, "HYV4VLVisionPatchEmbed")
    return result


@proof("inkling2_loop_text")
def inkling2_loop_text(model_type: str) -> Proof:
    result = Proof(model_type, "a bias from distance profiles that each token mixes; temperature; layers in loops")
    sizes = INKLING | {"rel_l2_clip_threshold": 0.5, "n_layers_per_attn_res_block": 2, "num_hidden_layers": 6}
    sizes |= {"loop_layer_index_start": 2, "loop_layer_index_end": 4, "loop_num_passes": 1}
    config = config_of(model_type, **sizes)
    names = tuple(f"relative_position_bias.{name}" for name in ("linear.weight", "proj", "norm.scale"))
    model = build(config, "Inkling2LoopTextModel")
    same_bias(result, model, spec_of(config), names, lambda own, x: own.q_proj(x, torch.zeros(2, 1)))
    looped = config_of(model_type, **sizes | {"loop_num_passes": 3})
    found = calls(build(looped, "Inkling2LoopTextModel"), input_ids=tokens((2, 12)))
    order = [call.layer for call in found if "position_bias" in call.options]
    result.equal("layers of three loops", order, [0, 1, *[2, 3] * 3, 4, 5])
    assert len(spec_of(looped).layers) == 6
    return result


@proof("omniasr_audio")
def omniasr_audio(model_type: str) -> Proof:
    result = Proof(model_type, "a plain convolution over the frames, added before the first layer")
    config = sized(model_type, num_conv_pos_embeddings=10)
    model, spec = drawn(build(config, attention=None), "encode_positions"), spec_of(config)
    real = torch.ones_like(REAL)
    model.subsampling = torch.nn.Identity()
    added_by(
        result,
        spec,
        model,
        "encode_positions.activation",
        "layers.0",
        posenc.Positions.from_mask(real),
        {"input_values": frames()},
        8.0,
        "frames with what the convolution adds",
    )
    assert len(model.layers) == len(spec.layers)
    return result


LANGUAGE = {"text_config": "language_model"}
SEEN, HEARD = {"vision_config": "vision_tower"}, {"audio_config": "audio_tower"}
TOKENS = {"vision_config": "vision_tokenizer", "audio_config": "audio_tokenizer"}
HELD = {
    "apertus1p5": ("RoPE; images and sound are tokens", LANGUAGE | TOKENS),
    "hy_v4_vl": ("M-RoPE over the last channels, and a learned grid", LANGUAGE | SEEN),
    "inkling2_loop": ("profiles of distance, and a rotary encoder", LANGUAGE | SEEN),
    "omniasr": ("a convolution, and a rotary language model", HEARD | LANGUAGE),
    "omniasr_ctc": ("a convolution", HEARD),
}


@proof(*HELD)
def composites(model_type: str) -> Proof:
    return made_of(model_type, *HELD[model_type])
