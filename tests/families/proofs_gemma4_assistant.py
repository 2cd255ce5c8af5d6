"""Gemma 4's drafting models: queries that turn, keys of another model."""

from __future__ import annotations

from unittest import mock

import pytest
import torch

from families.harness import IDS, Proof, at_of, build, calls, config_of, proof, spec_of, unrotated

FULL, SLIDING = "full_attention", "sliding_attention"


@proof("gemma4_assistant", "gemma4_unified_assistant")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE of queries as in its text model; the keys are those of the model it helps")
    sizes = {"num_hidden_layers": 4, "head_dim": 16, "global_head_dim": 24, "num_kv_shared_layers": 4, "sliding_window": 4,
             "layer_types": [SLIDING, FULL, SLIDING, FULL]}  # fmt: skip
    if model_type == "gemma4_assistant":
        text = config_of("gemma4_text", hidden_size_per_layer_input=0, vocab_size_per_layer_input=0, **sizes)
    else:
        text = config_of("gemma4_unified_text", **sizes)
    config = config_of(model_type, text_config=text.to_dict(), backbone_hidden_size=32)
    name = "Gemma4UnifiedAssistantForCausalLM" if "unified" in model_type else "Gemma4AssistantForCausalLM"
    assert any(finding.key == "text_config.num_kv_shared_layers" for finding in spec_of(config).findings)
    with pytest.raises(ValueError, match="layer types producing a cache"):
        build(config, name)  # the defect that the finding tells of; without its check the model is what it says
    with mock.patch.object(type(text), "kv_sharing_modes", property(lambda self: ["reuse"] * self.num_hidden_layers)):
        model, spec = build(config, name), spec_of(config)["text_config"]
    generator = torch.Generator().manual_seed(4)
    shared = {kind: tuple(torch.randn(2, 2, 9, width, generator=generator) for _ in "kv") for kind, width in
              ((SLIDING, 16), (FULL, 24))}  # fmt: skip
    passes = []
    for ids in (torch.zeros_like(IDS), IDS):
        given = {"inputs_embeds": torch.randn(2, IDS.shape[1], 64, generator=generator), "shared_kv_states": shared}
        passes.append(calls(model, position_ids=ids, logits_to_keep=torch.arange(IDS.shape[1]), **given))
    assert len(passes[1]) == len(spec.layers) == 4
    at, zero = at_of(IDS), at_of(torch.zeros_like(IDS))
    for number, (before, after) in enumerate(zip(*passes, strict=True)):
        layer, encoding = spec.layers[number], spec.encoding(number, arithmetic="float32")
        got = encoding.rotate(unrotated(before.q, encoding, zero, "query"), at, "query")
        result.close("queries of every layer at positions to 131071", got, after.q)
        result.equal("keys as they were given", after.k, shared[layer.kind][0])
        assert layer.uses[0].note
    return result
