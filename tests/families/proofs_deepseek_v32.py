"""posenc.configs.families.deepseek_v32, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.proofs_deepseek_v3 import BOTH, MAGNITUDE, indexed, turned


@proof("deepseek_v32", "axk2")
def deepseek_v32(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "latent attention: last channels, interleaved pairs in, half pairs out; indexer: first channels, half pairs",
    )
    turned(result)
    turned(result, rope_parameters=BOTH)
    indexed(result)
    indexed(result, rope_parameters=MAGNITUDE)
    return result


@proof("glm_moe_dsa")
def glm_moe_dsa(model_type: str) -> Proof:
    result = Proof(
        model_type, "latent attention (last channels) and indexer (first channels): interleaved pairs in, half pairs out"
    )
    turned(result, rope_parameters=BOTH)
    indexed(result, index_topk_freq=2, num_hidden_layers=5)
    return result


@proof("hy_v4")
def hy_v4(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention and indexer: last channelss, half pairs")
    turned(result, rope_parameters=BOTH)
    indexed(result, scaled_inside=False, num_hidden_layers=6)
    return result
