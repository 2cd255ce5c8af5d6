"""Towers that single families keep to themselves."""

from __future__ import annotations

import importlib

import torch

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of
from posenc.dialects.weights import with_weights


@proof("phi4_multimodal_vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; patches of any image read the cell that holds their corner")
    config = config_of(model_type, num_hidden_layers=2, image_size=14, patch_size=2, crop_size=14)
    model, spec = build(config, "Phi4MultimodalVisionModel"), spec_of(config)
    assert len(spec.layers) == len(model.encoder.layers)
    assert not any(layer.uses for layer in spec.layers[1:])
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        for height, width in ((7, 7), (3, 5), (9, 2)):
            pixels = torch.rand(1, 3, height * 2, width * 2)
            patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
            theirs = model.embeddings(pixels, torch.ones(1, height, width, dtype=torch.bool))
            at = posenc.Positions.grid(height, width, sized=True)
            result.close("embedded patches of images of three shapes", encoding.embed(patches, at), theirs)
    return result


@proof("phi4_multimodal_audio")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "a learned number for every head and clipped distance; padding stays in sight")
    config = config_of(model_type, hidden_size=32, num_blocks=2, num_attention_heads=4, bias_max_distance=5, input_size=16,
                       nemo_conv_channels=8, ext_pw_out_channel=32, depthwise_separable_out_channel=32)  # fmt: skip
    model, spec = build(config, "Phi4MultimodalAudioModel"), spec_of(config)
    kept = torch.ones(2, 96, dtype=torch.bool)
    found = calls(model, torch.randn(2, 96, 16), kept)
    assert len(found) == len(spec.layers)
    n = found[0].q.shape[2]
    assert n > 10
    at = posenc.Positions.arange(2, n)
    b, h, i, j = torch.meshgrid(*(torch.arange(size) for size in (2, 4, n, n)), indexing="ij")
    for number, call in enumerate(found):
        bias = with_weights(spec, number, model.state_dict()).bias(call.q, call.k, at, at)
        result.close("bias of every pair of frames", bias(b, h, i, j).detach() + 1, call.mask.detach())
    kept[1, 40:] = False
    seen = calls(model, torch.randn(2, 96, 16), kept)[len(found) - 1]
    padded = bias(b, h, i, j)[1, :, :, -1].detach()
    result.close(
        "bias of padding, to which the mask adds nothing where it adds 1 to frames", padded, seen.mask[1, :, :, -1].detach()
    )
    return result


@proof("radio")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, read bilinearly as for a square, of which the image takes the upper left")
    config = config_of(model_type, num_hidden_layers=2, patch_size=2, max_img_size=16, image_size=8)
    model, spec = build(config), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding)
    encoding, prefix = with_weights(spec, 0, model.state_dict()), config.num_cls_tokens + config.num_registers
    assert not any(layer.uses for layer in spec.layers[1:])
    with torch.no_grad():
        for height, width in ((8, 8), (3, 5), (6, 2)):
            pixels = torch.rand(1, 3, height * 2, width * 2)
            patches = model.embeddings.patch_projection(model.embeddings._image_to_patches(pixels))
            tokens = torch.cat([model.embeddings.cls_register_token[None], patches], dim=1)
            # torch finds places in fp32: near cell 8, to 8 roundings of a cell
            places = posenc.Positions.grid(height, width, sized=True).coords.clone()
            places[..., 2:] = max(height, width)
            first = torch.full((1, prefix, 4), -1).index_fill(-1, torch.tensor([2, 3]), max(height, width))
            at = posenc.Positions.at(torch.cat([first, places], dim=1))
            result.close(
                "embedded patches of images of three shapes", encoding.embed(tokens, at), model.embeddings(pixels), 8
            )
    assert len(calls(model, torch.rand(1, 3, 8, 8))) == len(spec.layers)
    return result


@proof("idefics_vision")
def _(model_type: str) -> Proof:
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
