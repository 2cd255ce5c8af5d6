"""posenc.configs.families.deepseek_v4, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    at_of,
    build,
    calls,
    config_of,
    frequencies,
    modeling,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.proofs_cohere import allowed
from families.proofs_deepseek_v3 import relu_seen
from families.proofs_dots3_note import V4
from posenc.configs import PositionSpec


def _version_4_indexer(result: Proof, config: Any, model: torch.nn.Module, spec: PositionSpec) -> None:
    kept: list[torch.Tensor] = []
    indexer = module_named(model, "layers.2.self_attn.compressor.indexer")
    hooks = [
        part.register_forward_hook(lambda module, inputs, output: kept.append(output.clone()))
        for part in (indexer.kv_norm, indexer.q_b_proj)
    ]
    with relu_seen(modeling("deepseek_v4")) as seen:
        calls(model, input_ids=tokens(IDS.shape), position_ids=IDS)
    for hook in hooks:
        hook.remove()
    assert [number for number, layer in enumerate(spec["indexer"].layers) if layer.uses] == [2]
    encoding = spec["indexer"].encoding(2, exact="model")
    k, q = kept
    starts = torch.arange(4).mul(2).expand(2, -1)
    q = encoding.rotate(q.unflatten(-1, (3, -1)).transpose(1, 2), at_of(IDS), "query").double()
    k = encoding.rotate(k[:, None], at_of(starts), "key").double()
    theirs = [x for x in seen if x.shape == (2, 8, 3, 4)]
    assert len(theirs) == 1
    result.close("products of the indexer", (q @ k.transpose(-1, -2)).transpose(1, 2), theirs[0], 8.0)


def _version_4(result: Proof, config: Any) -> None:
    model, spec = build(config), spec_of(config)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if name in ("position_bias", "sinks"):
                torch.nn.init.normal_(parameter)
    compressed: list[torch.Tensor] = []
    turned_back: list[torch.Tensor] = []
    hooks = []
    for name, module in model.named_modules():
        if name.endswith("compressor.kv_norm"):
            hooks.append(module.register_forward_hook(lambda module, inputs, output: compressed.append(output.clone())))
        if name.endswith("o_a_proj"):
            hooks.append(module.register_forward_pre_hook(lambda module, inputs: turned_back.append(inputs[0].clone())))
    passes = []
    for ids in (torch.zeros_like(IDS), IDS):
        compressed.clear()
        turned_back.clear()
        passes.append(calls(model, input_ids=tokens(IDS.shape), position_ids=ids))
    at_zero, moved = passes
    for hook in hooks:
        hook.remove()
    assert len(moved) == len(spec.layers) == 4
    blocks = [call.k[:, :, 8:] for call in moved]
    for call in (*at_zero, *moved):
        call.k, call.v = call.k[:, :, :8], call.v[:, :, :8]
        assert call.options["sliding_window"] == config.sliding_window
    most = 3.0 if allowed(spec) > 1 else 1.0
    same_rotation(result, spec, at_zero, moved, IDS, most, softmax=True)
    seen = iter(compressed)
    for number, (layer, block) in enumerate(zip(spec.layers, blocks, strict=True)):
        encoding = spec.encoding(number, exact="model")
        if layer.kind != "sliding_attention":
            rate = config.compress_rates[layer.kind]
            starts = torch.arange(8 // rate).mul(rate).expand(2, -1)
            result.close("compressed keys", encoding.rotate(next(seen)[:, None], at_of(starts), "key"), block, most)
        # the probe hands back values, or the first of them where there are more: here is how those were turned back
        out = moved[number].v if block.shape[2] == 0 else moved[number].v[:, :, :1]
        theirs = turned_back[number].flatten(2).unflatten(-1, (4, -1)).transpose(1, 2)
        result.close("outputs, turned back", encoding.rotate(out.expand_as(theirs), at_of(IDS), "output"), theirs, most)
    for label, number in (("main", 0), ("compress", 1)):
        frequencies(result, model.rotary_emb, spec, number, f"{label}_inv_freq")
    _version_4_indexer(result, config, model, spec)


@proof("deepseek_v4")
def deepseek_v4(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, interleaved pairs, last channels; keys are values, outputs are rotated back; compressed keys by block",
    )
    settings = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
    for more in ({}, {"rope_parameters": settings}, {"rope_parameters": settings | {"attention_factor": 1.25}}):
        _version_4(result, config_of(model_type, **V4 | more))
    return result
