"""posenc.configs.families.modernbert, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, proof
from families.turning import LINEAR, LLAMA3, YARN, also, turned


@proof("nomic_bert", "esmc", "eurobert", "gte", "jina_embeddings_v3")
def nomic_bert(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, every layer, bidirectional")
    own = {"esmc": {"num_key_value_heads": 4}, "eurobert": {"head_dim": 24}}.get(model_type, {})
    model = turned(result, rope_parameters=YARN, num_hidden_layers=2, **own)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **own)
    return result


@proof("modernbert", "modernbert-decoder")
def modernbert(model_type: str) -> Proof:
    both = {"sliding_attention": YARN, "full_attention": LINEAR}
    sizes = {"num_hidden_layers": 5, "local_attention": 6}
    looking = "causal" if model_type == "modernbert-decoder" else "bidirectional"
    result = Proof(model_type, f"RoPE, half pairs, {looking}; every third layer is full, with another base")
    model = turned(result, rope_parameters=both, **sizes)
    turned(result, layer_types=["sliding_attention", "full_attention"], num_hidden_layers=2, local_attention=4)
    for parameters in (None, {"sliding_attention": LINEAR, "full_attention": LLAMA3}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("ultrabert")
def ultrabert(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, bidirectional; every third layer is full, with another base")
    sizes = {"num_hidden_layers": 4, "sliding_window": 3, "num_key_value_heads": 2}
    model = turned(result, rope_parameters={"sliding_attention": YARN, "full_attention": LINEAR}, **sizes)
    for parameters in (None, {"sliding_attention": LINEAR, "full_attention": LLAMA3}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
