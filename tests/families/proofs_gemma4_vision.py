"""posenc.configs.families.gemma4_vision, compared with the models' own code in transformers."""

from __future__ import annotations

from dataclasses import replace

import torch

import posenc
from families.harness import Proof, build, calls, config_of, modeling, module_named, proof, same_rotation, spec_of
from posenc.configs.weights import with_weights

NO_POSITIONS = {"gemma4_unified_audio": "audio samples go to the text model, which counts them like tokens"}

PLACES = torch.tensor(
    [
        [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [2, 2]],
        [[5, 90], [90, 5], [0, 99], [99, 0], [7, 7], [31, 64], [2, 3], [-1, -1], [-1, -1]],
    ]
)


def places() -> posenc.Positions:
    """(x, y) of the patches above, the last two of the second image being padding."""
    at = posenc.Positions.at(PLACES)
    return replace(at, document=at.document.masked_fill((PLACES == -1).all(-1), -1))


@proof("gemma4_vision")
def gemma4_vision(model_type: str) -> Proof:
    result = Proof(model_type, "x and y tables, summed; RoPE over x in one half of the head, over y in the other")
    config = config_of(
        model_type,
        head_dim=24,
        patch_size=2,
        position_embedding_size=100,
        pooling_kernel_size=1,
        rope_parameters={"rope_type": "axial", "rope_theta": 50.0},
    )
    model, spec = build(config), spec_of(config)
    torch.nn.init.normal_(model.patch_embedder.position_embedding_table)
    pixels = torch.rand(2, 9, 12, generator=torch.Generator().manual_seed(2))
    passes = [calls(model, pixel_values=pixels, pixel_position_ids=ids) for ids in (torch.zeros_like(PLACES), PLACES)]
    assert len(passes[1]) == len(spec.layers)
    turning = replace(spec, layers=(replace(spec.layers[0], uses=spec.layers[0].uses[1:]), *spec.layers[1:]))
    same_rotation(result, turning, *passes, PLACES.movedim(-1, 0))
    own = module_named(model, "rotary_emb").inv_freq
    for half in torch.tensor(turning.encoding(0, exact="model").frequencies.values).chunk(4):
        result.equal(f"{len(own)} frequencies", half, own)

    tables = with_weights(
        replace(spec, layers=(replace(spec.layers[0], uses=spec.layers[0].uses[:1]),)), 0, model.state_dict()
    )
    padding = (PLACES == -1).all(-1)
    with torch.no_grad():
        patches = model.patch_embedder.input_proj(2 * (pixels - 0.5))
        theirs = model.patch_embedder(pixels, PLACES, padding)
        result.close("embedded patches, padding among them", tables.embed(patches, places()), theirs)
    return result


@proof("gemma4_unified_vision")
def gemma4_unified_vision(model_type: str) -> Proof:
    result = Proof(model_type, "x and y tables, summed, before the text model; no attention of its own")
    config = config_of(
        model_type, patch_size=2, pooling_kernel_size=1, mm_embed_dim=48, mm_posemb_size=100, output_proj_dims=48
    )
    text = config_of("gemma4_unified_text")
    torch.manual_seed(0)
    module, spec = modeling(model_type).Gemma4UnifiedVisionEmbedder(config, text).eval(), spec_of(config)
    torch.nn.init.normal_(module.pos_embedding)
    entered = []
    module.pos_norm.register_forward_pre_hook(lambda module, inputs: entered.append(inputs[0]))
    with torch.no_grad():
        pixels = torch.rand(2, 9, 12)
        module(pixels, PLACES)
        patches = module.patch_ln2(module.patch_dense(module.patch_ln1(pixels)))
        tables = with_weights(spec, 0, module.state_dict())
        result.close("embedded patches, padding among them", tables.embed(patches, places()), entered[0])
    return result
