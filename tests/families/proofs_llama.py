"""Families like Llama: halves paired, rope_theta in the file."""

from __future__ import annotations

from families.harness import Proof, build, config_of, frequencies, module_named, proof, rotary, spec_of


@proof("llama", "mistral", "mixtral")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, all layers alike")
    config = config_of(model_type)
    model, spec = build(config), spec_of(config)
    rotary(result, config, spec, model)
    frequencies(result, module_named(model, "rotary_emb"), spec)
    return result


@proof("gemma3_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; sliding layers at base 10 000, full ones at 1 000 000")
    scaled = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
    }
    config = config_of(model_type, head_dim=16, num_hidden_layers=6, sliding_window=4, rope_parameters=scaled)
    model, spec = build(config), spec_of(config)
    rotary(result, config, spec, model)
    turning = module_named(model, "rotary_emb")
    frequencies(result, turning, spec, 0, "sliding_attention_inv_freq")
    frequencies(result, turning, spec, 5, "full_attention_inv_freq")
    return result
