"""posenc.configs.families.mistral, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("mistral", "doge", "mixtral", "starcoder2")
def mistral(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; all layers have the same window or none")
    own = {"head_dim": 16} if model_type == "mixtral" else {}  # yarn fails there with head_dim null
    model = turned(result, sliding_window=4, num_hidden_layers=2, rope_parameters=YARN, **own)
    turned(result, sliding_window=None, num_hidden_layers=1)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters)
    return result
