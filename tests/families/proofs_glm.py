"""posenc.configs.families.glm, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.proofs_cohere import turned
from families.turning import LLAMA3


@proof("glm", "glm4")
def glm(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, half of a head")
    turned(result, head_dim=16)
    turned(result, head_dim=24, rope_parameters=LLAMA3 | {"partial_rotary_factor": 0.25})
    turned(result, head_dim=20, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25})
    return result


@proof("glm4_moe")
def glm4_moe(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, half of a head")
    turned(result)
    turned(result, head_dim=24, rope_parameters=LLAMA3 | {"partial_rotary_factor": 0.25})
    return result
