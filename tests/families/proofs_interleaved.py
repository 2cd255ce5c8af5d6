"""Neighbours paired, and their nearest relatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    _probe,
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
from families.turning import visible
from posenc.dialects import PositionSpec

YARN = {"rope_type": "yarn", "rope_theta": 20000.0, "factor": 8.0, "original_max_position_embeddings": 64}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def turned(result: Proof, *, softmax: bool = True, attention: str | None = "probe", **sizes: Any) -> torch.nn.Module:
    """The family's own forward at IDS against the spec of its configuration, and its frequencies bit for bit."""
    config = config_of(result.model_type, **sizes)
    model, spec = build(config, attention=attention), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape)}
    at_zero, moved = (calls(model, **inputs, position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers), f"{len(moved)} attention calls, posenc has {len(spec.layers)} layers"
    same_rotation(result, spec, at_zero, moved, IDS, allowed(spec), softmax=softmax)
    turning = next((number for number, layer in enumerate(spec.layers) if layer.uses), None)
    if turning is not None and attention:
        frequencies(result, module_named(model, "rotary_emb"), spec, turning)
    return model


def allowed(spec: PositionSpec) -> float:
    """One rounding; two where cos and sin have a magnitude, since the unrotated channels are then theirs divided by it,
    which rounds once more (by 2 it does not)."""
    scales = {use.build("float32").frequencies.cos_sin_scale for layer in spec.layers for use in layer.uses}
    return 1.0 if scales <= {1.0, 2.0} else 2.0


@proof("cohere", "ernie4_5", "ernie4_5_moe", "helium")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, all layers alike")
    width = 16 if model_type != "ernie4_5" else 24
    turned(result, head_dim=width)
    turned(result, head_dim=width, rope_parameters=YARN)
    return result


@proof("glm", "glm4")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, the first half of a head turns")
    turned(result, head_dim=16)
    turned(result, head_dim=24, rope_parameters=LLAMA3 | {"partial_rotary_factor": 0.25})
    turned(result, head_dim=20, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25})
    return result


@proof("glm4_moe")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, the first half of a head turns")
    turned(result)
    turned(result, head_dim=24, rope_parameters=LLAMA3 | {"partial_rotary_factor": 0.25})
    return result


@proof("cohere2")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, on sliding layers only: three of four")
    turned(result, num_hidden_layers=5, sliding_window=4)
    turned(result, num_hidden_layers=3, sliding_window=4, rope_parameters=YARN,
           layer_types=["full_attention", "sliding_attention", "full_attention"])  # fmt: skip
    turned(result, sliding_window=None, layer_types=["full_attention"] * 4)
    return result


@proof("cohere2_moe")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, on sliding layers and on the dense ones at the start")
    turned(result, num_hidden_layers=5, sliding_window=4, head_dim=16, first_k_dense_replace=2)
    turned(result, num_hidden_layers=6, sliding_window=4, head_dim=16, first_k_dense_replace=3,
           prefix_dense_sliding_window_pattern=2, sliding_window_pattern=3, rope_parameters=YARN)  # fmt: skip
    return result


def _attended(module: Any, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    out, weights = _probe(module, query, key, value, mask, scaling=1 / module.scale_attn)
    return out.transpose(1, 2), weights


@proof("gptj", "codegen")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, the first rotary_dim channels turn, base 10 000")
    config = config_of(
        model_type, hidden_size=96, num_hidden_layers=2, n_embd=96, n_layer=2, n_positions=131072, rotary_dim=12
    )
    model, spec = build(config, attention=None), spec_of(config)
    for module in model.modules():
        if hasattr(module, "_attn"):
            module._attn = partial(_attended, module)
    at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers) == 2
    same_rotation(result, spec, at_zero, moved, IDS, softmax=True)
    return result


@proof("openai_privacy_filter")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, within windows that look both ways")
    for more in ({}, {"rope_parameters": LLAMA3}):
        config = config_of(model_type, head_dim=24, sliding_window=2, **more)
        model, spec = build(config), spec_of(config, defaults=True)
        at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
        for call in (*at_zero, *moved):  # kernels are given the tokens on one side and the token itself
            assert call.options.pop("sliding_window") == (spec.layers[0].window + 1) // 2 == 3
        assert len(moved) == len(spec.layers)
        same_rotation(result, spec, at_zero, moved, IDS, 3.0)  # queries and keys are multiplied by d^(-1/4) afterwards
        assert all(torch.equal(call.mask[0, 0] > -1e30, visible(spec.layers[0], 8)) for call in moved)
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return result
