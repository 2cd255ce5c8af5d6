"""Gemma 4's text models: heads of two widths, a part of the wide ones turns, spread over all of it."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, turned

FULL, SLIDING = "full_attention", "sliding_attention"
LOCAL = {"rope_type": "default", "rope_theta": 5000.0}
PROPORTIONAL = {"rope_type": "proportional", "rope_theta": 100000.0, "partial_rotary_factor": 0.4, "factor": 3.0}


@proof("gemma4_text", "gemma4_unified_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; full layers with wider heads, of which a part turns (proportional)")
    sizes = {"num_hidden_layers": 7, "sliding_window": 4, "head_dim": 16, "global_head_dim": 24,
             "hidden_size_per_layer_input": 8}  # fmt: skip
    if model_type == "gemma4_unified_text":
        sizes.pop("hidden_size_per_layer_input")
    turned(result, **sizes)
    turned(result, rope_parameters={SLIDING: YARN, FULL: PROPORTIONAL}, use_bidirectional_attention="all", **sizes)
    mixed = {"layer_types": [FULL, SLIDING, FULL, SLIDING, FULL], "num_kv_shared_layers": 2}
    turned(result, rope_parameters={SLIDING: LINEAR, FULL: LLAMA3}, **{**sizes, "num_hidden_layers": 5, **mixed})
    odd = {**sizes, "num_hidden_layers": 2, "per_layer_config": {"1": {"head_dim": 20}}}
    turned(result, rope_parameters={SLIDING: LOCAL, FULL: PROPORTIONAL}, layer_types=[SLIDING, FULL], **odd)
    return result


@proof("embedding_gemma2_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, looking both ways; full layers with wider heads and another base")
    sizes = {"num_hidden_layers": 7, "sliding_window": 3, "head_dim": 16, "global_head_dim": 24,
             "hidden_size_per_layer_input": 8}  # fmt: skip
    turned(result, **sizes)
    turned(result, rope_parameters={SLIDING: YARN, FULL: PROPORTIONAL}, sliding_window_pattern=3, **sizes)
    return result
