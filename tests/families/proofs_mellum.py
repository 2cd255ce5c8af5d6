"""posenc.configs.families.mellum, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import FULL, LLAMA3, SLIDING, YARN, turned

PLAIN = {"rope_type": "default", "rope_theta": 5000.0}

LINEAR = {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}

SETTINGS = (
    {SLIDING: PLAIN, FULL: YARN | {"truncate": False}},  # which nothing reads there
    {SLIDING: LLAMA3, FULL: LINEAR},
)


@proof("zaya")
def zaya(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, half of the head; full and sliding layers with their own bases")
    kinds = {
        "layer_types": ["hybrid", "hybrid_sliding", "hybrid_sliding", "hybrid"],
        "sliding_window": 4,
        "head_dim": 16,
        "num_experts_per_tok": 1,
    }
    turned(result, **kinds)
    scaled = {"hybrid": YARN | {"partial_rotary_factor": 0.75}, "hybrid_sliding": LINEAR | {"partial_rotary_factor": 0.25}}
    turned(result, rope_parameters=scaled, **kinds)
    return result
