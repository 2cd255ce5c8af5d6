"""posenc.configs.families.gpt_neox, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, build, config_of, proof, spec_of
from families.turning import LINEAR, LLAMA3, YARN, also, by_kind, compared, recording, turned


@proof("solar_open")
def solar_open(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head, every layer")
    model = turned(result, num_hidden_layers=2, head_dim=24, n_shared_experts=1, rope_parameters=YARN)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, head_dim=24, rope_parameters=parameters)
    return result


@proof("gpt_neox", "minimax_m2", "nemotron", "persimmon", "phi", "stablelm")
def gpt_neox(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, the first channels of a head, every layer")
    sizes = {"num_hidden_layers": 2, "hidden_size": 96}
    if model_type == "minimax_m2":
        sizes |= {"head_dim": 24}
    turned(result, **sizes)
    model = turned(result, rope_parameters=YARN | {"partial_rotary_factor": 0.75}, **sizes)
    for parameters in (LINEAR, LLAMA3 | {"partial_rotary_factor": 0.75}):
        also(result, model, rope_parameters=parameters, **sizes)
    if model_type in ("gpt_neox", "minimax_m2"):  # an odd width, 5 of 20: the others fail there
        own = {"head_dim": 20} if model_type != "gpt_neox" else {}
        quarter = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
        turned(result, rope_parameters=quarter, **{**sizes, "hidden_size": 80, **own})
    return result


@proof("gpt_neox_japanese")
def gpt_neox_japanese(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, the first channels of a head, every layer")
    for parameters in (None, LINEAR | {"partial_rotary_factor": 0.5}):
        config = config_of(model_type, num_hidden_layers=2, rope_parameters=parameters)
        model, spec = recording(build(config, attention=None), "_attn"), spec_of(config)
        compared(result, model, spec)
        by_kind(result, model.rotary_emb, spec)
    return result
