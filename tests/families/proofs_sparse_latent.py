"""Latent attention in layers of several kinds, and the towers and wrappers around it."""

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
    made_of,
    modeling,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.proofs_interleaved import YARN, allowed
from families.proofs_latent import SIZES, indexed, relu_seen, turned
from posenc.dialects import PositionSpec


def drawn(model: torch.nn.Module) -> torch.nn.Module:
    """Random values for what a fresh model leaves empty, zero or one."""
    generator = torch.Generator().manual_seed(3)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("softmax_scaling.scale", "softmax_scaling.bias", ".alpha")):
            value.data = 0.3 + 0.2 * torch.rand(value.shape, generator=generator)
    return model


def filled(spec: PositionSpec, layer: int, model: torch.nn.Module) -> Any:
    """The encoding of a layer in the parity mode with the model's own values, found by the names that the spec says."""
    from posenc.dialects.weights import find
    from posenc.encodings.nope import NoPE
    from posenc.stack import Stack

    made = []
    for use in spec.layer(layer).uses:
        encoding = use.build("float32")
        for weight in use.weights:
            getattr(encoding, weight.parameter).data = find(model.state_dict(), weight.key.format(layer=layer)).clone()
        made.append(encoding.requires_grad_(False))
    return Stack(*made) if len(made) > 1 else made[0] if made else NoPE()


class Filled:
    """A spec whose encodings hold the model's weights."""

    def __init__(self, spec: PositionSpec, model: torch.nn.Module) -> None:
        self.spec, self.model, self.layers = spec, model, spec.layers

    def encoding(self, layer: int, arithmetic: str) -> Any:
        return filled(self.spec, layer, self.model)


@proof("mistral_large4_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: trailing slice at ω·exp(α), neighbours in, halves out, three layers of "
                   "four; queries × scale·ln(p + 1) + bias")  # fmt: skip
    sizes = SIZES | {"num_hidden_layers": 6, "q_lora_rank": None, "index_head_dim": 12, "index_n_heads": 3, "index_topk": 4,
                     "index_topk_freq": 2, "rope_parameters": YARN | {"attention_factor": 1.0}}  # fmt: skip
    for more in ({}, {"kv_source_layers": [0, 0, 2, 3, 4, 4]}, {"no_rope_layers": [0, 1, 1, 0, 0, 1]}):
        config = config_of(model_type, **sizes | more)
        model, spec = drawn(build(config)), spec_of(config)
        at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
        assert len(moved) == len(spec.layers) == 6
        same_rotation(result, Filled(spec, model), at_zero, moved, IDS, 4.0, softmax=True)  # their logarithm is fp32
    turning = module_named(model, "rotary_emb")
    frequencies(result, turning, PositionSpec("", layers=_bare(spec)))
    indexed(result, ready=drawn, encodings=lambda inside, layer, model: filled(inside, layer, model), most=16.0,
            **sizes)  # fmt: skip
    return result


def _bare(spec: PositionSpec) -> Any:
    from dataclasses import replace

    return tuple(replace(layer, uses=layer.uses[:1]) for layer in spec.layers if len(layer.uses) > 1)


@proof("mistral_large4")
def _(model_type: str) -> Proof:
    return made_of(model_type, "text as Mistral-Large-4, images as Pixtral",
                   {"text_config": "language_model", "vision_config": "vision_tower"})  # fmt: skip


DOTS = SIZES | {
    "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8,
    "num_hidden_layers": 6, "sliding_window": 4, "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2,
    "swa_q_lora_rank": 16, "swa_kv_lora_rank": 16, "swa_head_dim": 20, "swa_qk_nope_head_dim": 14, "swa_v_head_dim": 10,
    "index_head_dim": 12, "index_n_heads": 3, "index_topk": 4, "n_shared_experts": 1,
}  # fmt: skip


@proof("dots3_note_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: neighbours in, halves out; sliding layers have their own base and widths")
    for more in ({}, {"use_dsa": False}, {"use_sliding_window": False}):
        config = config_of(model_type, **DOTS | more)
        model, spec = build(config), spec_of(config)
        at_zero, moved = (calls(model, input_ids=tokens(IDS.shape), position_ids=p) for p in (torch.zeros_like(IDS), IDS))
        assert len(moved) == len(spec.layers) == 6
        same_rotation(result, spec, at_zero, moved, IDS, allowed(spec), softmax=True)
        turning = module_named(model, "rotary_emb")
        for kind in set(config.layer_types):
            frequencies(result, turning, spec, config.layer_types.index(kind), f"{kind}_inv_freq")
    indexed(result, **DOTS)
    return result


@proof("glm5_next_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: linear attention layers give the order")
    turned(result, num_hidden_layers=8, qk_rope_head_dim=0, linear_head_dim=16, linear_num_heads=4, index_head_dim=12,
           index_n_heads=3, index_topk=4, index_kpool=2)  # fmt: skip
    return result


@proof("dots3_note")
def _(model_type: str) -> Proof:
    return made_of(model_type, "text, images and audio, each by itself",
                   {"text_config": "language_model", "vision_config": "vision_tower",
                    "audio_config": "audio_tower"})  # fmt: skip


@proof("glm5_next")
def _(model_type: str) -> Proof:
    return made_of(model_type, "text and images, each by itself; a token of an image counts as one of text",
                   {"text_config": "language_model", "vision_config": "visual"})  # fmt: skip


@proof("dots3_note_vision_encoder", "glm5_next_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by row and column, halves paired, the same frequencies for both")
    dots = model_type.startswith("dots3")
    more = {"mlp_layer_types": ["dense"] * 2, "adapter_in_dim": 64, "adapter_out_dim": 32}
    if not dots:
        more = {"depth": 2, "num_heads": 4, "out_hidden_size": 32, "projection_intermediate_size": 32}
    config = config_of(model_type, num_hidden_layers=2, patch_size=2, **more)
    model, spec = build(config, "Dots3NoteVisionModel" if dots else "Glm5NextVisionModel"), spec_of(config)
    pixels, grid = torch.randn(24, 3 * 4 * (1 if dots else 2)), torch.tensor([[1, 4, 6]])
    rows = torch.arange(24) // 12 * 2 + torch.arange(24) % 4 // 2
    columns = torch.arange(24) % 12 // 4 * 2 + torch.arange(24) % 2
    ids = torch.stack([rows, columns], dim=-1)
    name = "pixel_values" if dots else "hidden_states"
    at_zero, moved = (calls(model, **{name: pixels}, grid_thw=grid, **given)
                      for given in ({"position_ids": torch.zeros_like(ids)}, {}))  # fmt: skip
    assert len(moved) == len(spec.layers) == 2
    same_rotation(result, spec, at_zero, moved, ids.T[:, None], softmax=True)
    far = ids * torch.tensor([1013, 771])
    moved = calls(model, **{name: pixels}, grid_thw=grid, position_ids=far)
    same_rotation(result, spec, at_zero, moved, far.T[:, None])
    return result


@proof("dots3_note_audio_encoder")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, half of a head turns; frames counted from 0")
    config = config_of(model_type, num_hidden_layers=2, adapter_input_size=64, adapter_out_dim=32, downsample_hidden_size=8)
    model, spec = build(config, "Dots3NoteAudioModel"), spec_of(config)
    frames = torch.randn(2, 8, 64)
    model.conv_stem.forward = lambda *inputs: (frames, torch.ones(2, 8, dtype=torch.bool))
    passes = []
    for ids in (torch.zeros_like(IDS), None, IDS):
        hook = model.rotary_embedding.register_forward_pre_hook(
            lambda module, inputs, ids=ids: inputs if ids is None else (inputs[0], ids)
        )
        passes.append(calls(model, torch.zeros(2, 3), torch.zeros(2)))
        hook.remove()
    assert len(passes[0]) == len(spec.layers) == 2
    same_rotation(result, spec, passes[0], passes[1], torch.arange(8).expand(2, -1), softmax=True)
    same_rotation(result, spec, passes[0], passes[2], IDS)
    frequencies(result, model.rotary_embedding, spec)
    assert all(call.mask is None or not (call.mask < 0).any() for call in passes[1])
    assert not any(layer.causal for layer in spec.layers)
    return result


V4 = {
    "head_dim": 24, "q_lora_rank": 16, "num_key_value_heads": 1, "o_groups": 2, "o_lora_rank": 8, "num_hidden_layers": 4,
    "index_head_dim": 12, "index_n_heads": 3, "index_topk": 2, "hc_mult": 2, "sliding_window": 6,
    "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
    "layer_types": [
        "sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention"],
    "partial_rotary_factor": 0.34, "num_nextn_predict_layers": 0,
}  # fmt: skip


@proof("deepseek_v4")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, neighbours paired, last channels; keys are values, outputs turn back; compressed "
                   "keys turn by their block's first index")  # fmt: skip
    settings = {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
    for more in ({}, {"rope_parameters": settings}, {"rope_parameters": settings | {"attention_factor": 1.25}}):
        _version_4(result, config_of(model_type, **V4 | more))
    return result


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
        encoding = spec.encoding(number, arithmetic="float32")
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


def _version_4_indexer(result: Proof, config: Any, model: torch.nn.Module, spec: PositionSpec) -> None:
    kept: list[torch.Tensor] = []
    indexer = module_named(model, "layers.2.self_attn.compressor.indexer")
    hooks = [part.register_forward_hook(lambda module, inputs, output: kept.append(output.clone()))
             for part in (indexer.kv_norm, indexer.q_b_proj)]  # fmt: skip
    with relu_seen(modeling("deepseek_v4")) as seen:
        calls(model, input_ids=tokens(IDS.shape), position_ids=IDS)
    for hook in hooks:
        hook.remove()
    assert [number for number, layer in enumerate(spec["indexer"].layers) if layer.uses] == [2]
    encoding = spec["indexer"].encoding(2, arithmetic="float32")
    k, q = kept
    starts = torch.arange(4).mul(2).expand(2, -1)
    q = encoding.rotate(q.unflatten(-1, (3, -1)).transpose(1, 2), at_of(IDS), "query").double()
    k = encoding.rotate(k[:, None], at_of(starts), "key").double()
    theirs = [x for x in seen if x.shape == (2, 8, 3, 4)]
    assert len(theirs) == 1
    result.close("products of the indexer", (q @ k.transpose(-1, -2)).transpose(1, 2), theirs[0], 8.0)
