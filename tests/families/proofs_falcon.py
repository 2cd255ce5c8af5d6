"""posenc.configs.families.falcon, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from torch import Tensor

import posenc
from families.harness import IDS, Call, Proof, build, calls, config_of, module_named, proof, same_rotation, spec_of, tokens
from families.turning import LINEAR, LLAMA3, SEEN, YARN, allowed, also, by_kind, hidden


def through_sdpa(model: torch.nn.Module, **inputs: Any) -> list[Call]:
    """One Call for every use of torch's own attention function."""
    found: list[Call] = []

    def record(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, **options: Any) -> Tensor:
        found.append(Call(torch.nn.Module(), None, q.clone(), k.clone(), v.clone(), attn_mask, None, {}))
        return v.expand_as(q)

    with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", record):
        calls(model, **inputs)
    return found


@proof("falcon")
def falcon(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head; or ALiBi, rounded, divided by √d_head")
    for own in ({"multi_query": True}, {"new_decoder_architecture": True, "num_kv_heads": 2}):
        config = config_of(model_type, num_hidden_layers=2, rope_parameters=YARN, **own)
        model, spec = build(config, attention="sdpa"), spec_of(config)
        passes = [
            through_sdpa(model, input_ids=tokens(IDS.shape), position_ids=ids) for ids in (torch.zeros_like(IDS), IDS)
        ]
        assert len(passes[1]) == len(spec.layers)
        same_rotation(result, spec, *passes, IDS, allowed(spec))
        by_kind(result, module_named(model, "rotary_emb"), spec)
        hidden(result, spec, through_sdpa(model, input_ids=tokens((2, SEEN))))
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters)

    config = config_of(model_type, num_hidden_layers=2, num_attention_heads=6, hidden_size=96, alibi=True)
    model, spec = build(config, attention="sdpa"), spec_of(config)
    kept = torch.ones(2, 300, dtype=torch.long)
    kept[1, :5] = 0  # padding on the left of the second row
    at = posenc.Positions.from_mask(kept.bool())
    found = through_sdpa(model, input_ids=tokens((2, 300)), attention_mask=kept)
    assert len(found) == len(spec.layers)
    b, h, i, j = torch.meshgrid(*(torch.arange(n) for n in (2, 6, 300, 300)), indexing="ij")
    seen = (j <= i) & kept.bool()[b, j]
    for number, call in enumerate(found):
        wide_k = call.k.repeat_interleave(call.q.shape[1] // call.k.shape[1], dim=1)
        bias = spec.encoding(number).bias(call.q, wide_k, at, at)
        result.close("bias of every visible key, with padding on the left", bias(b, h, i, j)[seen], call.mask[seen])
    return result
