"""posenc.configs.families.idefics, compared with the models' own code in transformers."""

from __future__ import annotations

import importlib

import torch

import posenc
from families.harness import IDS, Proof, build, calls, config_of, module_named, proof, same_rotation, spec_of, tokens
from families.turning import LINEAR, SEEN, YARN, by_kind, hidden
from posenc.configs.weights import with_weights


@proof("idefics_vision")
def idefics_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, the class token's row first")
    config = config_of(model_type, embed_dim=32, hidden_size=None, image_size=8, patch_size=2, num_hidden_layers=2)
    vision = importlib.import_module("transformers.models.idefics.vision")
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    model, spec = vision.IdeficsVisionTransformer(config).eval(), spec_of(config)
    assert len(spec.layers) == 2
    assert not spec.layers[1].uses
    pixels = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
        tokens = torch.cat([model.embeddings.class_embedding.expand(2, 1, -1), patches], dim=1)
        at = posenc.Positions.grid(4, 4, prefix=1)
        ours = with_weights(spec, 0, model.state_dict()).embed(tokens, at)
        result.close("embedded patches and class token", ours, model.embeddings(pixels))
        for height, width in ((7, 3), (2, 5), (8, 8)):
            pixels = torch.rand(1, 3, height * 2, width * 2)
            patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
            tokens = torch.cat([model.embeddings.class_embedding.expand(1, 1, -1), patches], dim=1)
            at = posenc.Positions.grid(height, width, prefix=1, sized=True)
            ours = with_weights(spec, 0, model.state_dict()).embed(tokens, at)
            theirs = model.embeddings(pixels, interpolate_pos_encoding=True)
            result.close("the same at sizes of three shapes", ours, theirs, 16)  # fp32 places, two axes
    return result


@proof("idefics")
def idefics(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, whole head; no positions in attention to images")
    vision = {
        "embed_dim": 32,
        "image_size": 8,
        "patch_size": 2,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    for parameters in (YARN, LINEAR, None):
        config = config_of(
            model_type,
            num_hidden_layers=3,
            rope_parameters=parameters,
            vision_config=vision,
            additional_vocab_size=0,
            cross_layer_interval=1,
        )
        model, spec = build(config), spec_of(config)
        by_kind(result, module_named(model, "rotary_emb"), spec)
        passes = []
        for ids in (torch.zeros_like(IDS), IDS, None):  # None: counted from 0, for the masks
            shape = (2, SEEN) if ids is None else IDS.shape
            given = {"image_encoder_embeddings": torch.randn(2, 1, 4, 32), "image_attention_mask": torch.ones(*shape, 1)}
            found = calls(model, input_ids=tokens(shape), position_ids=ids, **given)
            passes.append([call for call in found if not call.module.is_cross_attention])
        assert len(passes[1]) == len(spec.layers) == 3
        same_rotation(result, spec, passes[0], passes[1], IDS, 2.0)
        hidden(result, spec, passes[2])
    return result
