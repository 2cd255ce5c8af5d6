"""Learned grids of patches with something besides: each table against the family's own sum."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, replace, spec_of
from families.proofs_vit import BICUBIC, SMALL, grids, only_there, picture, places, randomly
from posenc.dialects.weights import with_weights
from posenc.encodings.sinusoidal import Sinusoidal


@proof("yolos")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grids with detection tokens, before the first layer and between layers, bicubic")
    config = config_of(
        model_type, **SMALL | {"num_hidden_layers": 3}, image_size=[10, 6], patch_size=2, num_detection_tokens=3
    )
    model, spec = randomly(build(config), "position_embeddings"), spec_of(config)
    seen: dict[str, torch.Tensor] = {}
    for n, layer in enumerate(model.encoder.layer):
        layer.register_forward_pre_hook(lambda layer, given, n=n: seen.__setitem__(f"in {n}", given[0]))
        layer.register_forward_hook(lambda layer, given, out, n=n: seen.__setitem__(f"out {n}", out))
    for size in ((5, 3), (3, 7), (4, 4)):
        tokens = posenc.Positions.grid(*size, prefix=4, sized=True).coords[0]
        at = posenc.Positions.at(torch.cat([tokens[3:], tokens[:3]])[None])
        most = 2.0 if size == (5, 3) else 16.0
        added(result, spec, model, "layer.0", at, {"pixel_values": picture(*size)}, most, "what enters the first layer")
        with torch.no_grad():
            model(picture(*size))
            for n in (1, 2):
                encoding = with_weights(spec, n, model.state_dict())
                result.close("what enters later layers", encoding.embed(seen[f"out {n - 1}"], at), seen[f"in {n}"], most)
    without = spec_of(replace(config, use_mid_position_embeddings=False))
    only_there(without)
    return result


@proof("eomt", "videomt")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; class token, registers and queries get nothing")
    sizes = SMALL | {"num_hidden_layers": 3}
    config = config_of(model_type, **sizes, image_size=32, patch_size=8, num_register_tokens=2, num_blocks=1, num_queries=3)
    name = {"eomt": "EomtForUniversalSegmentation", "videomt": "VideomtForUniversalSegmentation"}[model_type]
    model, spec = build(config, name), spec_of(config)
    image = picture(4, 4, 8)
    inputs = {
        "pixel_values" if model_type == "eomt" else "pixel_values_videos": image if model_type == "eomt" else image[None]
    }
    added(result, spec, model, "layers.0", places(4, 4, 0, 3), inputs, what="what enters the first layer")
    only_there(spec)
    assert len(model.layers) == len(spec.layers)
    return result


@proof("dpt")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bilinear for images of another size, or as its backbone does")
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, backbone_out_indices=[0, 1, 0, 1])
    model = randomly(build(config), "position_embeddings")
    grids(result, spec_of(config), model, "layer.0", native=(5, 5))
    backbone = {"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = config_of(model_type, backbone_config=backbone)
    from transformers import DPTForDepthEstimation

    with torch.device("meta"):
        whole = DPTForDepthEstimation(config)
    result.equal("the backbone", spec_of(config)["backbone_config"].family, whole.backbone.config.model_type)
    assert not hasattr(whole, "dpt") or whole.dpt is None
    return result


@proof("vit_mae")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grids that start as sinusoids; the decoder's read as one long row at another size")
    more = {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2}
    config = config_of(
        model_type, **SMALL, **more, image_size=10, patch_size=2, mask_ratio=0.0, decoder_intermediate_size=16
    )
    model, spec = build(config, "ViTMAEForPreTraining"), spec_of(config)
    model.vit.embeddings.patch_embeddings.projection._is_hf_initialized = False
    model.vit.embeddings.initialize_weights()
    first = Sinusoidal(32, axes=2, layout="sin_cos", reads=(1, 0), silent="negative")
    at = places(5, 5, 0, 1)
    table = first.embed(torch.zeros(1, 26, 32), at)
    result.close("what the table starts as", table, model.vit.embeddings.position_embeddings.detach())
    randomly(model, "position_embeddings", "decoder_pos_embed")
    for size in ((5, 5), (3, 7), (8, 8)):
        asked = {"interpolate_pos_encoding": True} if size != (5, 5) else {}
        noise = torch.arange(size[0] * size[1])[None].float()  # in order, none masked
        inputs = {"pixel_values": picture(*size), "noise": noise, **asked}
        most = 16.0 if asked else 1.0
        added(result, spec, model, "vit.layers.0", places(*size, 1, sized=True), inputs, most, BICUBIC)
        row = places(1, size[0] * size[1], 1, sized=True)
        # cells are 1 of 25 apart over the whole row: torch finds their places in fp32
        added(result, spec["decoder"], model, "decoder_layers.0", row, inputs, 64.0 if asked else 1.0, "the decoder's")
    only_there(spec)
    return result


@proof("hiera")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid of the finest stage, bicubic on request; of the coarsest before the decoder")
    config = config_of(model_type, embed_dim=16, image_size=[32, 32], depths=[1, 1, 1], num_heads=[1, 2, 4],
                       num_query_pool=1, masked_unit_attention=[True, False, False], masked_unit_size=[4, 4],
                       decoder_hidden_size=16, decoder_depth=1, decoder_num_heads=2, hidden_size=None,
                       num_hidden_layers=None, num_attention_heads=None)  # fmt: skip
    model, spec = randomly(build(config, "HieraForPreTraining"), "position_embeddings"), spec_of(config)
    assert len(spec.layers) == 3
    only_there(spec)
    embeddings = model.hiera.embeddings
    embeddings.patch_embeddings.is_mae = False
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        for size in ((8, 8), (6, 9), (12, 12)):
            image = picture(*size, 4)
            patches, _, _ = embeddings.patch_embeddings(image)
            whole, _, _ = embeddings(image, interpolate_pos_encoding=size != (8, 8))
            got = encoding.embed(patches, places(*size, sized=True))
            result.close("embeddings of images of three sizes", got, whole, 16.0)
    embeddings.patch_embeddings.is_mae = True
    inputs = {"pixel_values": picture(8, 8, 4), "noise": torch.arange(4)[None].float()}
    added(result, spec["decoder"], model, "decoder.decoder_block", places(4, 4), inputs, what="what enters the decoder")
    return result
