"""Towers that turn by row and column, patches in blocks."""

from __future__ import annotations

from dataclasses import replace

import torch

from families.harness import Proof, calls, proof
from families.proofs_vision_rotary import GRIDS, block_order, made, rotation
from posenc.dialects import read_config


@proof("exaone4_5_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by row and column, halves paired, grouped heads, in windows but for some layers")
    sizes = {"fullatt_block_indexes": [1], "window_size": 8, "patch_size": 2, "out_hidden_size": 32,
             "num_key_value_heads": 1}  # fmt: skip
    for parameters in (None, {"rope_type": "axial", "rope_theta": 500.0}):
        model, spec, inputs = made(model_type, "Exaone4_5_VisionModel", rope_parameters=parameters, **sizes)
        assert [layer.kind for layer in spec.layers] == ["window_attention", "full_attention", "window_attention"]
        tokens = len(block_order(2))
        one = {"window_index": torch.arange(tokens // 4), "cu_window_seqlens": torch.tensor([0, tokens], dtype=torch.int32)}
        rotation(result, model, spec, block_order(2), **inputs, **one)  # one window, so that tokens stay where they are
    segments = [len([c for c in calls(model, **inputs) if c.module is block.attn]) for block in model.blocks]
    frames = sum(frames for frames, _, _ in GRIDS)
    assert segments[1] == frames < segments[0] == segments[2], segments  # windows in layers 0 and 2, frames in layer 1
    return result


@proof("lfm3_vl_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by row and column, halves paired, in some layers; the others are convolutions")
    kinds = ["conv", "full_attention", "conv", "full_attention"]
    for said in (kinds, None):
        model, spec, inputs = made(model_type, "Lfm3VlVisionModel", num_hidden_layers=4, num_key_value_heads=1,
                                   layer_types=said)  # fmt: skip
        inputs["pixel_values"] = inputs.pop("hidden_states")
        result.equal("which layers attend", [layer.kind for layer in spec.layers], model.config.layer_types)
        assert [layer.is_attention_layer for layer in model.layers] == [bool(layer.uses) for layer in spec.layers]
        attending = replace(spec, layers=tuple(layer for layer in spec.layers if layer.uses))
        rotation(result, model, attending, block_order(2), **inputs)
    silent = {key: value for key, value in model.config.to_dict().items() if key != "layer_types"}
    assert read_config(silent).layers == spec.layers
    return result
