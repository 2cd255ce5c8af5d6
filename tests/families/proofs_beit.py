"""posenc.configs.families.beit, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_swin import BIAS, first_layer, of_pairs
from families.proofs_vit import SMALL, picture, places, randomly
from families.scores import bias_of
from posenc.configs.weights import with_weights


@proof("data2vec-vision")
def data2vec_vision(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned bias for each head and difference in the image; separate entries for the class token"
    )
    for own, shared in ((True, False), (False, True), (True, True)):
        config = config_of(
            model_type,
            **SMALL,
            image_size=8,
            patch_size=2,
            use_relative_position_bias=own,
            use_shared_relative_position_bias=shared,
            use_absolute_position_embeddings=True,
        )
        model, spec = randomly(build(config, attention="eager"), BIAS, "position_embeddings"), spec_of(config)
        for size in ((4, 4), (3, 6)):
            at, image = places(*size, 1), {"pixel_values": picture(*size)}
            added(
                result,
                first_layer(spec),
                model,
                "layer.0",
                places(*size, 1, sized=True),
                image,
                16.0,
                "what enters the first layer",
            )
            q = torch.zeros(1, 2, at.length, 16)
            for number, layer in enumerate(model.encoder.layer):
                made: Any = with_weights(spec, number, model.state_dict())
                biases = [e for e in (made if isinstance(made, posenc.Stack) else [made]) if hasattr(e, "window")]
                assert len(biases) == own + shared
                resized = [each if size == (4, 4) else each.resized(size) for each in biases]
                got = sum(bias_of(each, q, q, at) for each in resized)
                with torch.no_grad():
                    theirs = [
                        module(size, False, size)
                        for module in (
                            getattr(layer.attention.attention, "relative_position_bias", None),
                            getattr(model.encoder, "relative_position_bias", None),
                        )
                        if module is not None
                    ]
                result.close("bias of every pair, of images of two sizes", got, sum(theirs), 2.0)
    return result


@proof("beit")
def beit(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned bias for each head and difference in the image; separate entries for the class token"
    )
    for own, shared in ((True, False), (False, True), (True, True)):
        config = config_of(
            model_type,
            **SMALL,
            image_size=8,
            patch_size=2,
            use_relative_position_bias=own,
            use_shared_relative_position_bias=shared,
            use_absolute_position_embeddings=True,
        )
        model, spec = randomly(build(config), BIAS, "position_embeddings"), spec_of(config)
        for size in ((4, 4), (3, 6)):
            at, image = places(*size, 1), {"pixel_values": picture(*size)}
            first = places(*size, 1, sized=True)
            added(result, first_layer(spec), model, "layers.0", first, image, 16.0, "what enters the first layer")
            for number, call in enumerate(calls(model, **image)):
                uses = with_weights(spec, number, model.state_dict())
                biases = [e for e in (uses if isinstance(uses, posenc.Stack) else [uses]) if hasattr(e, "window")]
                assert len(biases) == own + shared
                resized = [each if size == (4, 4) else each.resized(size) for each in biases]
                got = sum(of_pairs(each, at, at, 2) for each in resized)
                result.close("bias of every pair, of images of two sizes", got, call.mask.detach(), 2.0)
    return result
