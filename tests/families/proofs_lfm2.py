"""posenc.configs.families.lfm2, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof, spec_of
from families.proofs_jamba import placed
from families.turning import LLAMA3, YARN, also, turned


@proof("lfm3")
def lfm3(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, half pairs: whole heads within windows, half of the pairs in full layers; convolutions also keep order",
    )
    sizes = {"num_hidden_layers": 8, "head_dim": 24, "sliding_window": 4}
    model = turned(result, **sizes)
    placed(result, model, spec_of(model.config))
    both = {"sliding_attention": YARN | {"truncate": True}, "full_attention": LLAMA3}
    also(result, model, rope_parameters=both, **sizes)
    return result
