"""posenc.configs.families.phi3, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Proof, build, calls, config_of, module_named, proof, same_rotation, spec_of, tokens
from families.turning import SEEN, allowed, hidden, turned

SHORT, LONG = [1.0 + n / 7 for n in range(8)], [2.0 + n * n / 3 for n in range(8)]

LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": SHORT, "long_factor": LONG}

NEAR = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [3, 17, 60, 61, 62, 255, 1023, 4095]])  # one short of what follows

FAR = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [3, 17, 60, 4095, 4096, 4097, 65537, 131071]])


def at_both_lengths(result: Proof, config: Any, most: float = 2.0) -> torch.nn.Module:
    """The family's forward at positions within the trained length, and at positions beyond."""
    model, spec = build(config), spec_of(config)
    for ids in (NEAR, FAR):
        zero, moved = (calls(model, input_ids=tokens(ids.shape), position_ids=p) for p in (torch.zeros_like(ids), ids))
        assert len(moved) == len(spec.layers)
        same_rotation(result, spec, zero, moved, ids, most)
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    parity = spec.encoding(0, exact="model")
    for length, which in ((4096, "original_inv_freq"), (4097, "long_inv_freq")):
        theirs = getattr(module_named(model, "rotary_emb"), which).float()
        result.equal(f"{len(theirs)} frequencies", torch.tensor(parity.at_length(length).frequencies.values), theirs)
    return model


@proof("phi3")
def phi3(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, part of the head; LongRoPE by the length of the request")
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "max_position_embeddings": 131072, "sliding_window": 4}
    turned(result, **{**sizes, "sliding_window": None})
    assert allowed(spec_of(config_of(model_type, rope_parameters=LONGROPE, **sizes))) == 2.0
    at_both_lengths(result, config_of(model_type, rope_parameters=LONGROPE, **sizes))
    half = LONGROPE | {"partial_rotary_factor": 0.5, "short_factor": SHORT[:4], "long_factor": LONG[:4], "factor": 4.0}
    at_both_lengths(result, config_of(model_type, rope_parameters=half, **sizes))
    return result


@proof("phimoe")
def phimoe(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; LongRoPE that never uses its long factors: only the scale changes")
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "max_position_embeddings": 131072, "sliding_window": 4}
    turned(result, **{**sizes, "sliding_window": None})
    scaled = LONGROPE | {"short_mscale": 1.25, "long_mscale": 1.5, "original_max_position_embeddings": 4096}
    config = config_of(model_type, rope_parameters=scaled, **sizes)
    model, spec = build(config), spec_of(config)
    for ids in (NEAR, FAR):
        zero, moved = (calls(model, input_ids=tokens(ids.shape), position_ids=p) for p in (torch.zeros_like(ids), ids))
        same_rotation(result, spec, zero, moved, ids, 2.0)
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    assert any(finding.key == "rope_parameters.long_factor" for finding in spec.remarks)
    return result
