"""posenc.configs.families.dots3_note, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    frequencies,
    made_of,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.proofs_cohere import allowed
from families.proofs_deepseek_v3 import SIZES, indexed
from posenc.configs import PositionSpec


def filled(spec: PositionSpec, layer: int, model: torch.nn.Module) -> Any:
    """The encoding of a layer in the parity mode with the model's own values, found by the names that the spec says."""
    from posenc.combined import Stack
    from posenc.configs.weights import find
    from posenc.encodings.nope import NoPE

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

    def encoding(self, layer: int, exact: str) -> Any:
        return filled(self.spec, layer, self.model)


DOTS = SIZES | {
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 8,
    "num_hidden_layers": 6,
    "sliding_window": 4,
    "swa_num_attention_heads": 2,
    "swa_num_key_value_heads": 2,
    "swa_q_lora_rank": 16,
    "swa_kv_lora_rank": 16,
    "swa_head_dim": 20,
    "swa_qk_nope_head_dim": 14,
    "swa_v_head_dim": 10,
    "index_head_dim": 12,
    "index_n_heads": 3,
    "index_topk": 4,
    "n_shared_experts": 1,
}


@proof("dots3_note_text")
def dots3_note_text(model_type: str) -> Proof:
    result = Proof(
        model_type, "latent attention: interleaved pairs in, half pairs out; sliding layers have their own base and widths"
    )
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


@proof("dots3_note")
def dots3_note(model_type: str) -> Proof:
    return made_of(
        model_type,
        "text, images and audio, separate parts",
        {"text_config": "language_model", "vision_config": "vision_tower", "audio_config": "audio_tower"},
    )


@proof("dots3_note_vision_encoder", "glm5_next_vision")
def dots3_note_vision_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, the same frequencies for both")
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
    at_zero, moved = (
        calls(model, **{name: pixels}, grid_thw=grid, **given) for given in ({"position_ids": torch.zeros_like(ids)}, {})
    )
    assert len(moved) == len(spec.layers) == 2
    same_rotation(result, spec, at_zero, moved, ids.T[:, None], softmax=True)
    far = ids * torch.tensor([1013, 771])
    moved = calls(model, **{name: pixels}, grid_thw=grid, position_ids=far)
    same_rotation(result, spec, at_zero, moved, far.T[:, None])
    return result


@proof("dots3_note_audio_encoder")
def dots3_note_audio_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, half of a head; frames counted from 0")
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
    "head_dim": 24,
    "q_lora_rank": 16,
    "num_key_value_heads": 1,
    "o_groups": 2,
    "o_lora_rank": 8,
    "num_hidden_layers": 4,
    "index_head_dim": 12,
    "index_n_heads": 3,
    "index_topk": 2,
    "hc_mult": 2,
    "sliding_window": 6,
    "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
    "layer_types": [
        "sliding_attention",
        "heavily_compressed_attention",
        "compressed_sparse_attention",
        "sliding_attention",
    ],
    "partial_rotary_factor": 0.34,
    "num_nextn_predict_layers": 0,
}
