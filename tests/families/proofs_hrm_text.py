"""posenc.configs.families.hrm_text, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("hrm_text")
def hrm_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, in every run of two stacks")
    sizes = {"num_hidden_layers": 2, "H_cycles": 2, "L_cycles": 3, "head_dim": 24, "embedding_scale": 1.0}
    model = turned(result, rope_parameters=YARN, **sizes)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
