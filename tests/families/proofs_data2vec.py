"""data2vec's convolutions, and what its image encoder adds to scores and patches."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_vit import SMALL, picture, places, randomly
from families.proofs_windows import BIAS, _first
from families.scores import bias_of
from families.silenced import Holding, added_by
from posenc.dialects.weights import with_weights


@proof("data2vec-audio")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions over the frames, added before the first layer; attention has no positions")
    for kernel in (5, 6):
        config = config_of(model_type, num_hidden_layers=2, num_conv_pos_embedding_groups=4, conv_pos_kernel_size=kernel,
                           num_conv_pos_embeddings=3, conv_dim=[16], conv_kernel=[4], conv_stride=[2])  # fmt: skip
        model, spec = build(config, attention=None), spec_of(config)
        with torch.no_grad():
            for parameter in model.encoder.pos_conv_embed.parameters():
                parameter.normal_(std=0.3)
        frames = torch.randn(2, 21, 64, generator=torch.Generator().manual_seed(2))
        at = posenc.Positions.from_mask(torch.ones(2, 21))
        assert len(model.encoder.layers) == len(spec.layers)
        whole = Holding(encoder=model.encoder)
        added_by(result, spec, whole, "pos_conv_embed", "encoder.layer_norm", at, {"hidden_states": frames}, 24.0,
                 "frames with what the convolutions add")  # fmt: skip
    return result


@proof("data2vec-vision")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned number for every head and difference in the image, class token apart")
    for own, shared in ((True, False), (False, True), (True, True)):
        config = config_of(model_type, **SMALL, image_size=8, patch_size=2, use_relative_position_bias=own,
                           use_shared_relative_position_bias=shared, use_absolute_position_embeddings=True)  # fmt: skip
        model, spec = randomly(build(config, attention="eager"), BIAS, "position_embeddings"), spec_of(config)
        for size in ((4, 4), (3, 6)):
            at, image = places(*size, 1), {"pixel_values": picture(*size)}
            added(result, _first(spec), model, "layer.0", places(*size, 1, sized=True), image, 16.0,
                  "what enters the first layer")  # fmt: skip
            q = torch.zeros(1, 2, at.length, 16)
            for number, layer in enumerate(model.encoder.layer):
                made: Any = with_weights(spec, number, model.state_dict())
                biases = [e for e in (made if isinstance(made, posenc.Stack) else [made]) if hasattr(e, "window")]
                assert len(biases) == own + shared
                resized = [each if size == (4, 4) else each.resized(size) for each in biases]
                got = sum(bias_of(each, q, q, at) for each in resized)
                with torch.no_grad():
                    theirs = [module(size, False, size) for module in (
                        getattr(layer.attention.attention, "relative_position_bias", None),
                        getattr(model.encoder, "relative_position_bias", None)) if module is not None]  # fmt: skip
                result.close("bias of every pair, of images of two sizes", got, sum(theirs), 2.0)
    return result
