"""posenc.configs.families.idefics2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_vit import SMALL
from posenc.configs.weights import with_weights

CLASSES = {
    "idefics2_vision": "Idefics2VisionTransformer",
    "idefics3_vision": "Idefics3VisionTransformer",
    "smolvlm_vision": "SmolVLMVisionTransformer",
}

NO_POSITIONS = {"idefics2_perceiver": "learned queries; the image features already have positions"}


@proof(*CLASSES)
def idefics2_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; a patch reads the cell that holds its corner")
    for side in (7, 70):  # 70 cells, as published models have, are some that fp32 fractions miss
        config = config_of(model_type, **SMALL, image_size=2 * side, patch_size=2)
        model, spec = build(config, CLASSES[model_type]), spec_of(config)
        encoding = with_weights(spec, 0, model.state_dict())
        torch.nn.init.normal_(model.embeddings.position_embedding.weight)
        encoding = with_weights(spec, 0, model.state_dict())
        for height, width in ((side, side), (3, 5), (25, 9), (12, 55)):
            with torch.no_grad():
                pixels = torch.randn(1, 3, 2 * height, 2 * width, generator=torch.Generator().manual_seed(4))
                patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
                theirs = model.embeddings(pixels, torch.ones(1, height, width, dtype=torch.bool))
            at = posenc.Positions.grid(height, width, sized=True)
            result.close("embedded patches of images of four shapes", encoding.embed(patches, at).detach(), theirs)
        kept = torch.zeros(1, 6, 6, dtype=torch.bool)
        kept[:, :4, :5] = True  # the image of a batch in which others are larger
        pixels = torch.randn(1, 3, 12, 12)
        with torch.no_grad():
            patches = model.embeddings.patch_embedding(pixels).flatten(2).transpose(1, 2)
            theirs = model.embeddings(pixels, kept)
        at = torch.tensor([0, 0, 4, 5]).expand(1, 36, 4).clone()  # padding reads the first cell
        at[:, kept.flatten()] = posenc.Positions.grid(4, 5, sized=True).coords
        got = encoding.embed(patches, posenc.Positions.at(at)).detach()
        result.close("an image smaller than its batch, and the padding beside it", got, theirs)
    found = calls(model, torch.randn(1, 3, 12, 10), torch.ones(1, 6, 5, dtype=torch.bool))
    assert len(found) == len(spec.layers) == 2
    assert not spec.layers[1].uses
    return result
