"""posenc.configs.families.llama4, compared with the models' own code in transformers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from families.harness import (
    IDS,
    Call,
    Proof,
    at_of,
    build,
    calls,
    config_of,
    frequencies,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.turning import LINEAR, LLAMA3, YARN, also, hidden
from posenc.encodings.bases.temperature import FloorLogTemperature


def _chunks(result: Proof, spec: Any, found: list[Call]) -> None:
    """Masks: own chunk of 4 in chunked layers, all earlier tokens in the others."""
    i, j = torch.arange(10)[:, None], torch.arange(10)[None]
    for layer, call in zip(spec.layers, found, strict=True):
        expected = (j <= i) & ((i // 4 == j // 4) | (layer.kind != "chunked_attention"))
        assert call.mask is not None
        assert torch.equal(call.mask[0, 0] > -1e30, expected), layer.kind
    assert {layer.kind for layer in spec.layers} == {"chunked_attention", "full_attention"}
    result.equal("what each layer's mask lets it see", True, True)


@proof("beam")
def beam(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, within windows; full layers: (1 + (p + 1)/2048)^0.1 on queries instead")
    sliding = YARN | {"rope_theta": 30000.0}
    config = config_of(
        model_type,
        num_hidden_layers=7,
        sliding_window=4,
        head_dim=24,
        rope_parameters={"sliding_attention": sliding, "full_attention": None},
    )
    model, spec = build(config), spec_of(config)
    zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    same_rotation(
        result, spec, zero, moved, IDS, 3.0
    )  # their temperature is fp32: its logarithm, product and exponent round
    hidden(result, spec, calls(model, input_ids=tokens((2, 10))))
    frequencies(result, model.rotary_emb, spec, 0, "sliding_attention_inv_freq")
    assert [layer.kind for layer in spec.layers].count("full_attention") == 2
    assert [use.name for use in spec.layers[6].uses] == ["PowerTemperature"]
    for parameters in (None, {"sliding_attention": LLAMA3, "full_attention": LINEAR}):
        config = config_of(model_type, num_hidden_layers=7, head_dim=24, rope_parameters=parameters)
        module, spec = type(model.rotary_emb)(config), spec_of(config)
        frequencies(result, module, spec, 0, "sliding_attention_inv_freq")
        if parameters:
            frequencies(result, module, spec, 5, "full_attention_inv_freq")
    return result


@proof("llama4_text")
def llama4_text(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE, interleaved pairs, in chunked layers; the others scale queries by a logarithm of the token count"
    )
    sizes: dict[str, Any] = {
        "num_hidden_layers": 5,
        "head_dim": 24,
        "attention_chunk_size": 4,
        "floor_scale": 3,
        "use_qk_norm": False,
        "attn_scale": 0.3,
    }
    config = config_of(model_type, rope_parameters=LLAMA3, attn_temperature_tuning=False, **sizes)
    model, spec = build(config, "Llama4TextModel"), spec_of(config)
    zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    assert len(moved) == len(spec.layers)
    same_rotation(result, spec, zero, moved, IDS)
    frequencies(result, model.rotary_emb, spec)
    for parameters in (None, LINEAR):
        also(result, model, rope_parameters=parameters, attn_temperature_tuning=False, **sizes)
    _chunks(result, spec, calls(model, input_ids=tokens((2, 10))))

    tempered = config_of(model_type, rope_parameters=LLAMA3, **sizes)
    twin, other = deepcopy(model), spec_of(tempered)
    for layer in twin.layers:
        layer.self_attn.attn_temperature_tuning = True
    ids = torch.arange(10).expand(2, -1)
    off, on = (calls(m, input_ids=tokens((2, 10)), position_ids=ids) for m in (model, twin))
    for number, (before, after) in enumerate(zip(off, on, strict=True)):
        uses = [use for use in other.layers[number].uses if use.name == "FloorLogTemperature"]
        assert bool(uses) == (after.q is not before.q and not torch.equal(before.q, after.q)), number
        for use in uses:
            temperature = use.build()
            assert isinstance(temperature, FloorLogTemperature)
            got = temperature.rotate(before.q, at_of(ids), "query")
            result.close("queries that sharpen with the number of tokens", got, after.q, 2.0)  # their τ is fp32
    return result
