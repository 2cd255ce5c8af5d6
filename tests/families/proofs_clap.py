"""posenc.configs.families.clap, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_swin import BIAS, of_pairs
from families.proofs_vit import places, randomly
from posenc.configs.weights import with_weights


@proof("clap_text_model")
def clap_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, counted over non-padding tokens")
    config = config_of(model_type, max_position_embeddings=40, pad_token_id=1, num_hidden_layers=2)
    model, spec = build(config, "ClapTextModel", attention=None), spec_of(config)
    text = torch.tensor([[5, 6, 7, 8, 9, 10], [1, 1, 7, 8, 9, 10], [5, 6, 7, 8, 1, 1]])
    inputs = {"input_ids": text, "attention_mask": (text != 1).long()}
    added(
        result,
        spec,
        model,
        "embeddings.LayerNorm",
        posenc.Positions.from_mask(text != 1),
        inputs,
        silent=("token_type_embeddings.weight",),
    )
    return result


@proof("clap_audio_model")
def clap_audio_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned bias for each head and difference within a window, shifted in odd layers")
    none: dict[str, Any] = dict.fromkeys(("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"))
    config = config_of(
        model_type,
        **none | {"num_attention_heads": [1, 2, 4], "hidden_size": 32},
        depths=[2, 2, 2],
        window_size=4,
        spec_size=64,
        patch_size=4,
        patch_stride=[4, 4],
        patch_embeds_hidden_size=8,
        num_mel_bins=16,
        enable_fusion=False,
    )
    model, spec = randomly(build(config, "ClapAudioModel", attention=None), BIAS), spec_of(config)
    blocks = [block for stage in model.audio_encoder.layers for block in stage.blocks]
    assert len(blocks) == len(spec.layers) == 6
    reached: list[tuple[Tensor, Tensor | None]] = []
    hooks = [
        block.attention.self.register_forward_pre_hook(lambda module, args: reached.append((args[0], args[1])))
        for block in blocks
    ]
    with torch.no_grad():
        model(input_features=torch.randn(1, 1, 256, 16, generator=torch.Generator().manual_seed(0)))
        for hook in hooks:
            hook.remove()
        for number, (block, layer, (x, mask)) in enumerate(zip(blocks, spec.layers, reached, strict=True)):
            assert (mask is not None) == (layer.kind == "shifted_window") == (block.shift_size > 0)
            inner, at = block.attention.self, places(4, 4)
            bias = of_pairs(with_weights(spec, number, model.state_dict()), at, at, inner.num_attention_heads)
            q, k = (
                side(x).unflatten(-1, (inner.num_attention_heads, -1)).transpose(1, 2) for side in (inner.query, inner.key)
            )
            _, theirs = inner(x, output_attentions=True)
            result.close(
                "attention weights in a window, of every layer",
                (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias).softmax(-1),
                theirs,
                32.0,
            )
    return result
