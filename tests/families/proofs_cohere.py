"""posenc.configs.families.cohere, compared with the models' own code in transformers."""

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
from families.turning import YARN
from posenc.configs import PositionSpec


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
def cohere(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, every layer")
    width = 16 if model_type != "ernie4_5" else 24
    turned(result, head_dim=width)
    turned(result, head_dim=width, rope_parameters=YARN)
    return result


@proof("cohere2")
def cohere2(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, in sliding layers only: three of four")
    turned(result, num_hidden_layers=5, sliding_window=4)
    turned(
        result,
        num_hidden_layers=3,
        sliding_window=4,
        rope_parameters=YARN,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
    )
    turned(result, sliding_window=None, layer_types=["full_attention"] * 4)
    return result


@proof("cohere2_moe")
def cohere2_moe(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, in sliding layers and in the dense ones at the start")
    turned(result, num_hidden_layers=5, sliding_window=4, head_dim=16, first_k_dense_replace=2)
    turned(
        result,
        num_hidden_layers=6,
        sliding_window=4,
        head_dim=16,
        first_k_dense_replace=3,
        prefix_dense_sliding_window_pattern=2,
        sliding_window_pattern=3,
        rope_parameters=YARN,
    )
    return result
