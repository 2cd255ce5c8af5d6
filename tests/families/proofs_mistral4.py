"""posenc.configs.families.mistral4, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    frequencies,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.proofs_deepseek_v3 import SIZES, indexed, turned
from families.proofs_dots3_note import Filled, filled
from families.turning import LINEAR, YARN, also, hidden
from posenc.configs import PositionSpec


def _bare(spec: PositionSpec) -> Any:
    from dataclasses import replace

    return tuple(replace(layer, uses=layer.uses[:1]) for layer in spec.layers if len(layer.uses) > 1)


def drawn(model: torch.nn.Module) -> torch.nn.Module:
    """Random values for what a fresh model leaves empty, zero or one."""
    generator = torch.Generator().manual_seed(3)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("softmax_scaling.scale", "softmax_scaling.bias", ".alpha")):
            value.data = 0.3 + 0.2 * torch.rand(value.shape, generator=generator)
    return model


@proof("mistral4")
def mistral4(model_type: str) -> Proof:
    result = Proof(
        model_type, "latent attention: last channels, interleaved pairs in, half pairs out; queries × 1 + β·ln(1 + ⌊p/L⌋)"
    )
    tempered = YARN | {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 256}
    turned(result, most=2.0, rope_parameters=tempered | {"attention_factor": 1.0})  # their fp32 logarithm
    turned(result, most=3.0, rope_interleave=False, rope_parameters=tempered | {"mscale": 1.0, "mscale_all_dim": 0.5})
    return result


@proof("mistral_large4_text")
def mistral_large4_text(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "latent attention: last channels with frequencies ω·exp(α), interleaved pairs in, half "
        "pairs out, three of four layers; queries × scale·ln(p + 1) + bias",
    )
    sizes = SIZES | {
        "num_hidden_layers": 6,
        "q_lora_rank": None,
        "index_head_dim": 12,
        "index_n_heads": 3,
        "index_topk": 4,
        "index_topk_freq": 2,
        "rope_parameters": YARN | {"attention_factor": 1.0},
    }
    for more in ({}, {"kv_source_layers": [0, 0, 2, 3, 4, 4]}, {"no_rope_layers": [0, 1, 1, 0, 0, 1]}):
        config = config_of(model_type, **sizes | more)
        model, spec = drawn(build(config)), spec_of(config)
        at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
        assert len(moved) == len(spec.layers) == 6
        same_rotation(result, Filled(spec, model), at_zero, moved, IDS, 4.0, softmax=True)  # their logarithm is fp32
    turning = module_named(model, "rotary_emb")
    frequencies(result, turning, PositionSpec("", layers=_bare(spec)))
    indexed(result, ready=drawn, encodings=lambda inside, layer, model: filled(inside, layer, model), most=16.0, **sizes)
    return result


@proof("ministral3")
def ministral3(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, YaRN; queries times 1 + β ln(1 + ⌊p/length⌋)")
    yarn = YARN | {"llama_4_scaling_beta": 0.3}
    for window in (None, 4):
        config = config_of(model_type, rope_parameters=yarn, head_dim=24, num_hidden_layers=2, sliding_window=window)
        model, spec = build(config), spec_of(config)
        zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
        same_rotation(result, spec, zero, moved, IDS, 3.0)  # a magnitude of cos and sin, and an fp32 temperature
        hidden(result, spec, calls(model, input_ids=tokens((2, 10))))
        frequencies(result, model.rotary_emb, spec)
    also(result, model, head_dim=24)
    linear = LINEAR | {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 64}
    also(result, model, head_dim=24, rope_parameters=linear)
    return result
