"""posenc.configs.families.lw_detr, compared with the models' own code in transformers."""

from __future__ import annotations

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, config_of, modeling, proof, spec_of
from families.proofs_sam2 import cells
from posenc.configs.weights import with_weights


@proof("lw_detr_vit")
def lw_detr_vit(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bicubic; windows without positions of their own")
    config = config_of(
        model_type,
        hidden_size=32,
        num_attention_heads=2,
        num_hidden_layers=3,
        image_size=32,
        patch_size=4,
        pretrain_image_size=20,
        num_windows=4,
        window_block_indices=[0, 2],
    )
    model, spec = build(config, "LwDetrViTBackbone"), spec_of(config)
    with torch.no_grad():
        torch.nn.init.normal_(model.embeddings.position_embeddings)
        encoding = with_weights(spec, 0, model.state_dict())
        for height, width in ((8, 8), (5, 5), (3, 7)):
            picture = torch.randn(1, 3, 4 * height, 4 * width)
            patches = model.embeddings.projection(picture).flatten(2).transpose(1, 2)
            expected = model.embeddings(picture).flatten(2).transpose(1, 2)
            own = height == width == 5
            got = encoding.embed(patches, posenc.Positions.at(cells(height, width, sized=not own)[None]))
            # Theirs has the places of cells in fp32.
            result.close("what enters the first layer", got, expected, 1.0 if own else 16.0)
    windows = ["window_attention" if layer.window else "full_attention" for layer in model.encoder.layer]
    result.equal("which layers see windows", [layer.kind for layer in spec.layers], windows)
    bare = config_of(model_type, use_absolute_position_embeddings=False)
    with pytest.raises(AttributeError, match="NoneType"):
        build(bare, "LwDetrViTBackbone")
    assert not any(layer.uses for layer in spec_of(bare).layers)
    return result


@proof("rf_detr_dinov2")
def rf_detr_dinov2(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid with a class token, bicubic with antialiasing; windows")
    config = config_of(
        model_type,
        hidden_size=32,
        num_attention_heads=2,
        num_hidden_layers=3,
        image_size=24,
        patch_size=4,
        num_windows=1,
        out_indices=[1, 3],
    )
    spec, module = spec_of(config), modeling(model_type).RfDetrDinov2Embeddings(config)
    with torch.no_grad():
        state = {f"embeddings.{name}": value for name, value in module.state_dict().items()}
        encoding = with_weights(spec, 0, state)
        for height, width in ((6, 6), (4, 4), (3, 8)):
            picture = torch.randn(1, 3, 4 * height, 4 * width)
            patches = torch.cat([module.cls_token, module.patch_embeddings(picture)], dim=1)
            own = height == width == 6
            at = posenc.Positions.grid(height, width, prefix=1, sized=not own)
            result.close("what enters the first layer", encoding.embed(patches, at), module(picture), 1.0 if own else 16.0)
    windows = ["window_attention" if n in config.window_block_indexes else "full_attention" for n in range(3)]
    result.equal("which layers see windows", [layer.kind for layer in spec.layers], windows)
    assert "full_attention" in windows
    assert "window_attention" in windows
    return result


@proof("lw_detr", "rf_detr")
def lw_detr(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of each query's box, through a network; the encoder's own positions")
    config = CONFIG_MAPPING[model_type]()
    spec, module = spec_of(config, defaults=True), modeling(model_type)
    boxes = torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(3))
    theirs = module.encode_sinusoidal_position_embedding(boxes, num_pos_feats=config.d_model // 2)
    got = spec.encoding(0).embed(torch.zeros(2, 5, 2 * config.d_model), posenc.Positions.at(boxes.double()))
    result.close("sinusoids of boxes", got, theirs, 16.0)  # angles to 2π, every step of theirs rounded
    result.equal("the backbone", [part.family for part in spec.parts], [config.backbone_config.model_type])
    with torch.device("meta"):
        name = "LwDetr" if model_type == "lw_detr" else "RfDetr"
        decoder = getattr(module, f"{name}Decoder")(config)
    assert len(spec.layers) == 2 * len(decoder.layers)
    assert decoder.ref_point_head.layers[0].in_features == 2 * config.d_model
    return result
