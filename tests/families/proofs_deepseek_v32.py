"""posenc.dialects.families.deepseek_v32, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.proofs_deepseek_v3 import BOTH, MAGNITUDE, indexed, turned


@proof("deepseek_v32", "axk2")
def deepseek_v32(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: trailing slice, neighbours in and halves out; indexer: first channels, "
                   "in halves")  # fmt: skip
    turned(result)
    turned(result, rope_parameters=BOTH)
    indexed(result)
    indexed(result, rope_parameters=MAGNITUDE)
    return result


@proof("glm_moe_dsa")
def glm_moe_dsa(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention and indexer: neighbours in and halves out, trailing and leading slice")
    turned(result, rope_parameters=BOTH)
    indexed(result, index_topk_freq=2, num_hidden_layers=5)
    return result


@proof("hy_v4")
def hy_v4(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention and indexer: trailing slices, halves paired")
    turned(result, rope_parameters=BOTH)
    indexed(result, scaled_inside=False, num_hidden_layers=6)
    return result
