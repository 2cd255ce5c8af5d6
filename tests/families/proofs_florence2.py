"""posenc.configs.families.florence2, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, made_of, modeling, proof, spec_of
from posenc.configs.weights import with_weights


@proof("florence_vision")
def florence_vision(model_type: str) -> Proof:
    result = Proof(
        model_type, "a convolution over neighbours before each attention, in windows, and each feed-forward part"
    )
    sizes: dict[str, Any] = {
        "depths": [1, 2],
        "embed_dim": [8, 16],
        "num_heads": [2, 2],
        "num_groups": [2, 2],
        "patch_stride": [2, 2],
        "patch_padding": [1, 1],
        "patch_prenorm": [False, True],
        "patch_size": [3, 3],
        "window_size": 3,
    }
    config = config_of(model_type, **sizes)
    model, spec = build(config, "Florence2VisionBackbone"), spec_of(config)
    found = calls(model, torch.randn(1, 3, 20, 28), fixed=False)
    assert len(found) == len(spec.layers) == 2 * 3
    parts = [part for stage in model.blocks for block in stage for part in (block.spatial_block, block.channel_block)]
    for number, (layer, module, call) in enumerate(zip(spec.layers, parts, found, strict=True)):
        width = module.conv1.in_channels
        tokens = call.q.shape[2]
        assert layer.kind == ("window_attention" if hasattr(module, "window_attn") else "channel_attention")
        assert layer.window == (tokens if layer.kind == "window_attention" else None)
        assert call.mask is None
        assert not layer.causal
        x = torch.randn(1, width, 4, 5, generator=torch.Generator().manual_seed(number))
        at = posenc.Positions.grid(4, 5)
        for encoding, conv in zip(
            with_weights(spec, number, model.state_dict()), (module.conv1, module.conv2), strict=True
        ):
            with torch.no_grad():
                got, expected = encoding.embed(flat(x), at), flat(conv(x) + x)
            result.close("what leaves every convolution", got, expected, 2.0)  # nine terms in another order
    return result


def flat(x: Tensor) -> Tensor:
    return x.flatten(2).transpose(1, 2)


@proof("florence2")
def florence2(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "vision_tower"}
    result = made_of(model_type, "a convolutional encoder, learned column and row vectors after it, and BART", parts)
    entered: list[Tensor] = []
    for width in (16, 18):  # half of it is odd in the second
        vision = {
            "embed_dim": [8, 8, 8, width],
            "max_position_embeddings": 9,
            "max_temporal_embeddings": 4,
            "projection_dim": 12,
        }
        config = config_of(model_type, vision_config=vision)
        projector, spec = modeling(model_type).Florence2MultiModalProjector(config), spec_of(config)
        projector.image_projection.register_forward_pre_hook(lambda module, given: entered.append(given[0]))
        features = torch.randn(2, width, 3, 9)
        at = torch.cat([posenc.Positions.grid(3, 9, batch=2).coords, torch.zeros(2, 27, 1, dtype=torch.long)], dim=-1)
        with torch.no_grad():
            projector(features)
            got = with_weights(spec, 0, projector.state_dict()).embed(flat(features), posenc.Positions.at(at))
        result.close("what the projector adds", got, entered[-1][:, 1:], 2.0)  # three terms in another order
    return result
