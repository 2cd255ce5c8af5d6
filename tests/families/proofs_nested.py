"""Each kind of layer has a rotation of its own."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LLAMA3, YARN, also, turned

FULL, SLIDING = "full_attention", "sliding_attention"
PLAIN = {"rope_type": "default", "rope_theta": 5000.0}
LINEAR = {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}
SETTINGS = (
    {SLIDING: PLAIN, FULL: YARN | {"truncate": False}},  # which nothing reads there
    {SLIDING: LLAMA3, FULL: LINEAR},
)


@proof("gemma3_text", "gemma3n_text", "olmo3", "laguna", "mellum", "mimo_v2_flash")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; sliding and full layers at bases and scalings of their own")
    sizes = {"num_hidden_layers": 7, "sliding_window": 4, "head_dim": 16}
    if model_type == "olmo3":
        sizes.pop("head_dim")
    if model_type == "gemma3n_text":
        sizes |= {"num_hidden_layers": 10, "num_kv_shared_layers": 5, "hidden_size_per_layer_input": 8, "laurel_rank": 8}
    if model_type == "mimo_v2_flash":
        sizes |= {"v_head_dim": 16}
    mixed = {"layer_types": [FULL, SLIDING, SLIDING, FULL, FULL], "num_hidden_layers": 5}
    turned(result, **sizes)
    model = turned(result, rope_parameters=SETTINGS[0], **({**sizes, **mixed} if "3n" not in model_type else sizes))
    also(result, model, rope_parameters=SETTINGS[1], **sizes)
    if model_type in ("laguna", "mimo_v2_flash"):
        half = {SLIDING: PLAIN | {"partial_rotary_factor": 0.75}, FULL: YARN | {"partial_rotary_factor": 0.5}}
        turned(result, rope_parameters=half, **{**sizes, **mixed})
    if model_type == "gemma3_text":
        turned(result, use_bidirectional_attention=True, **sizes)
        turned(result, sliding_window_pattern=3, **sizes)
    if model_type == "mimo_v2_flash":
        turned(result, sliding_window_size=4, **sizes)
    return result


@proof("zaya")
def _(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE, halves paired, half of the head turns; plain and sliding layers at bases of their own"
    )
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
