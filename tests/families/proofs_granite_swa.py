"""posenc.configs.families.granite_swa, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, build, config_of, frequencies, proof, spec_of
from families.turning import LINEAR, LLAMA3, YARN, also, compared, turned


@proof("granite_swa", "granitemoe_swa")
def granite_swa(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; each layer has its own window and base; base 0 means no positions")
    sizes = {"num_hidden_layers": 6, "sliding_window": 4}
    model = turned(result, rope_parameters=YARN, **sizes)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    bases = [0, 30000.0, 500.0, 30000.0, 0, 1e6]
    config = config_of(model_type, rope_parameters=LINEAR, layer_rope_theta=bases, **sizes)
    model, spec = build(config), spec_of(config)
    compared(result, model, spec)
    for number in (1, 2, 5):
        frequencies(result, model.rotary_embs[sorted(set(bases) - {0}).index(bases[number])], spec, number)
    return result
