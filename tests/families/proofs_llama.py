"""posenc.configs.families.llama, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

from families.harness import Proof, build, config_of, frequencies, module_named, proof, rotary, spec_of
from families.turning import LINEAR, LLAMA3, YARN, also, compared, turned, turned_then_normalised

CLASSES = {"aria_text": "AriaTextModel", "granite4_vision_text": "Granite4VisionTextModel"}


@proof(*CLASSES)
def aria_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, every layer")
    sizes: dict[str, Any] = {"num_hidden_layers": 2} | ({"head_dim": 24} if model_type == "aria_text" else {})
    model = turned(result, model_class=CLASSES[model_type], rope_parameters=YARN, **sizes)
    for parameters in (None, LLAMA3, LINEAR):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 3.0}

LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "original_max_position_embeddings": 1024,
    "factor": 4.0,
    "short_factor": [1.0 + n / 5 for n in range(8)],
    "long_factor": [2.0 + n for n in range(8)],
}


@proof(
    "llama",
    "arcee",
    "bitnet",
    "dbrx",
    "diffllama",
    "emu3_text_model",
    "flex_olmo",
    "gemma",
    "granite",
    "granitemoe",
    "granitemoeshared",
    "hy_v3",
    "hyperclovax",
    "internlm3",
    "iquestcoder",
    "jais2",
    "jetmoe",
    "olmo",
    "olmo2",
    "olmoe",
    "seed_oss",
)
def llama(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, every layer")
    own = {
        "dbrx": {
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 7.0},  # asked for, and turns nothing
            "d_model": 64,
            "hidden_size": None,
            "n_heads": 4,
            "num_attention_heads": None,
            "n_layers": 2,
            "num_hidden_layers": None,
        },
        "emu3_text_model": {"model_class": "Emu3TextModel"},
        "gemma": {"head_dim": 24},
        "hy_v3": {"head_dim": 24},
        "seed_oss": {"head_dim": 24},
        "internlm3": {"head_dim": 24},
        "iquestcoder": {"head_dim": 24},
        "jetmoe": {"kv_channels": 24},
    }
    sizes = {"num_hidden_layers": 2} | own.get(model_type, {})
    model = turned(result, rope_parameters=YARN, **sizes)
    sizes.pop("model_class", None)
    for parameters in (None, LLAMA3, LINEAR):
        also(result, model, rope_parameters=parameters, **sizes)
    for parameters in (DYNAMIC, LONGROPE) if model_type == "llama" else ():  # frequencies of the length of the request
        config = config_of(model_type, rope_parameters=parameters, max_position_embeddings=4096, **sizes)
        compared(result, build(config), spec_of(config))
    return result


@proof("apertus")
def apertus(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer, scaled as Llama 3.1")
    model = turned(result, num_hidden_layers=2)
    also(result, model, rope_parameters=YARN)
    return result


@proof("hunyuan_v1_dense", "hunyuan_v1_moe")
def hunyuan_v1_dense(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer, normalised afterwards; alpha makes a larger base")
    alpha = {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0}
    model = turned_then_normalised(
        result, norms=("query_layernorm", "key_layernorm"), rope_parameters=alpha, num_hidden_layers=2, head_dim=24
    )
    for parameters in (None, LINEAR, YARN):
        also(result, model, rope_parameters=parameters, head_dim=24)
    return result


@proof("nanochat")
def nanochat(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, reversed rotation, normalised afterwards")
    model = turned_then_normalised(result, norms=("q_norm", "k_norm"), rope_parameters=LINEAR, num_hidden_layers=2)
    for parameters in (None, LLAMA3, YARN):
        also(result, model, rope_parameters=parameters)
    return result


@proof("granite_docling_text")
def granite_docling_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer")
    for sizes in ({}, {"rope_parameters": YARN}):
        config = config_of(model_type, **sizes)
        model, spec = build(config, "GraniteDoclingTextModel"), spec_of(config)
        rotary(result, config, spec, model, most=2.0 if sizes else 1.0)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("chameleon")
def chameleon(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, every layer; images are tokens")
    codes = {
        "base_channels": 32,
        "latent_channels": 32,
        "embed_dim": 32,
        "num_embeddings": 4,
        "channel_multiplier": [1],
        "num_res_blocks": 1,
        "resolution": 8,
    }
    sizes = {"num_hidden_layers": 2, "vq_config": codes, "vocabulary_map": {"<image>": 3}}
    model = turned(result, rope_parameters=YARN, **sizes)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
