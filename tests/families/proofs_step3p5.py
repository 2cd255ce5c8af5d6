"""posenc.configs.families.step3p5, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("step3p5")
def step3p5(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; each kind of layer has its own base and fraction of the head")
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    sizes: dict[str, Any] = {
        "head_dim": 24,
        "sliding_window": 4,
        "layer_types": kinds,
        "n_routed_experts": 4,
        "share_expert_dim": 16,
        "mlp_layer_types": ["dense"] * 4,
    }
    both = {"full_attention": YARN | {"partial_rotary_factor": 0.5}, "sliding_attention": LINEAR}
    model = turned(result, model_class="Step3p7TextModel", rope_parameters=both, **sizes)
    for parameters in (
        None,
        {
            "full_attention": LLAMA3,
            "sliding_attention": {"rope_type": "default", "rope_theta": 5.0, "partial_rotary_factor": 0.25},
        },
    ):
        also(result, model, rope_parameters=parameters, **sizes)
    also(
        result,
        model,
        rope_theta=[1000.0, 50.0, 50.0, 1000.0],
        partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
        rope_scaling=LLAMA3 | {"rope_theta": 1000.0},
        **sizes,
    )
    return result
