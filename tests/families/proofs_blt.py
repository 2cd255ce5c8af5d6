"""posenc.configs.families.blt, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

from families.harness import Proof, build, calls, config_of, frequencies, made_of, proof, spec_of, tokens
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import YARN, visible

CLASSES = {
    "blt_local_encoder": "BltLocalEncoder",
    "blt_local_decoder": "BltLocalDecoder",
    "blt_global_transformer": "BltGlobalTransformer",
    "blt_patcher": "BltPatcher",
}


def inputs_of(model_type: str) -> dict[str, Any]:
    x = torch.randn(2, 8, 64)
    return {
        "blt_local_encoder": {"inputs_embeds": x, "num_patches": 2, "patch_ids": torch.zeros(2, 8, dtype=torch.long)},
        "blt_local_decoder": {"inputs_embeds": x, "patch_embeds": torch.randn(2, 3, 48)},
        "blt_global_transformer": {"inputs_embeds": x},
        "blt_patcher": {"input_ids": tokens((2, 8))},
    }[model_type]


@proof(*CLASSES)
def blt_local_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs; cross-attention without positions")
    for more in ({}, {"rope_parameters": YARN}):
        sized = {"hidden_size_global": 48} if "local" in model_type else {}
        sized |= {"sliding_window": 3} if model_type == "blt_patcher" else {}
        config = config_of(model_type, **sized | more)
        model, spec = build(config, CLASSES[model_type]), spec_of(config)
        own = {"only": lambda call: "SelfAttention" in type(call.module).__name__, **inputs_of(model_type)}
        found = turned_inside(result, spec, model, model.rotary_emb, most=allowed(spec), softmax=True, **own)
        if model_type == "blt_patcher":
            assert all(torch.equal(call.mask[0, 0] > -1e30, visible(spec.layers[0], 8)) for call in found)
        frequencies(result, model.rotary_emb, spec)
    return result


@proof("blt")
def blt(model_type: str) -> Proof:
    result = made_of(
        model_type,
        "encoder, patches, decoder and patcher are separate; one window for the bytes",
        {
            "patcher_config": "patcher",
            "encoder_config": "local_encoder",
            "global_config": "global_transformer",
            "decoder_config": "local_decoder",
        },
    )
    small = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 32}
    config = config_of(
        model_type,
        encoder_config=small | {"hidden_size_global": 64},
        global_config=small,
        patch_in_forward=False,
        decoder_config=small | {"hidden_size_global": 64},
        local_attention_window_len=3,
        encoder_hash_byte_group_vocab=50,
    )
    model, spec = build(config), spec_of(config)
    found = calls(model, input_ids=tokens((1, 8)), use_cache=False)  # its cache asks for num_hidden_layers
    names = {module: name for name, module in model.named_modules()}
    for part, end in (("encoder_config", "local_encoder"), ("decoder_config", "local_decoder")):
        masks = [call.mask for call in found if end in names[call.module] and "self_attn" in names[call.module]]
        assert len(masks) == len(spec[part].layers) == 2
        for mask, layer in zip(masks, spec[part].layers, strict=True):
            result.equal("what encoder and decoder see", mask[0, 0] > -1e30, visible(layer, 8))
    return result
