"""posenc.configs.families.qwen2, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
def qwen2(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer; windows if use_sliding_window is set")
    own = {"head_dim": 24} if "qwen3" in model_type else {}
    window = {"sliding_window": 4} | ({} if model_type == "qwen3_moe" else {"max_window_layers": 3})
    model = turned(result, use_sliding_window=True, num_hidden_layers=5, rope_parameters=YARN, **window, **own)
    turned(result, use_sliding_window=False, num_hidden_layers=2, **window, **own)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **own)
    return result
