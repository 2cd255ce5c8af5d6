"""posenc.configs.families.yolos, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, replace, spec_of
from families.proofs_vit import SMALL, only_there, picture, places, randomly
from posenc.configs.weights import with_weights


@proof("yolos")
def yolos(model_type: str) -> Proof:
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
def eomt(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; class token, registers and queries have no positions")
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
