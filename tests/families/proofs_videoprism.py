"""posenc.configs.families.videoprism, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added, entering
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_vit import places, randomly


@proof("videoprism_vision_model")
def videoprism_vision_model(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned grid, bilinear and antialiased on request, then a learned table of frames, likewise"
    )
    config = config_of(
        model_type,
        hidden_size=32,
        num_attention_heads=2,
        num_spatial_layers=2,
        num_temporal_layers=2,
        image_size=10,
        tubelet_size=[1, 2, 2],
        num_frames=4,
        intermediate_size=16,
    )
    model, spec = randomly(build(config, "VideoPrismVisionModel"), "position_embeddings"), spec_of(config)
    assert [bool(layer.uses) for layer in spec.layers] == [True, False, True, False]
    assert [len(model.spatial_layers), len(model.temporal_layers)] == [2, 2]
    first, then = spec_part(spec, 0), spec_part(spec, 2)
    for (height, width), frames in (((5, 5), 4), ((3, 7), 6), ((4, 4), 3)):
        inputs = {
            "pixel_values_videos": torch.randn(1, frames, 3, 2 * height, 2 * width),
            "interpolate_pos_encoding": (height, frames) != (5, 4),
        }
        at = posenc.Positions.at(places(height, width, sized=True).coords.expand(frames, -1, -1))
        added(result, first, model, "spatial_layers.0", at, inputs, 16.0, "what enters the layers of frames")
        number = torch.arange(frames)
        row = torch.stack([number, 0 * number, 0 * number + frames, 0 * number + 1], dim=-1)
        at = posenc.Positions.at(row.expand(height * width, -1, -1))
        added(result, then, model, "temporal_layers.0", at, inputs, 16.0, "what enters the layers of places")
    return result


def spec_part(spec: posenc.PositionSpec, number: int) -> posenc.PositionSpec:
    """Of the spec that layer alone."""
    from dataclasses import replace

    return replace(spec, layers=(spec.layers[number],))


@proof("videoprism_text_model")
def videoprism_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos]; none for the class token, which comes last")
    config = config_of(model_type, num_hidden_layers=2, max_position_embeddings=12, hidden_size=32)
    model, spec = build(config, "VideoPrismTextModel"), spec_of(config)
    ids = torch.randint(3, 32, (2, 8))
    whole = entering(model, "layers.0", {"input_ids": ids})
    with torch.no_grad():
        words = model.embeddings.token_embedding(ids) * 32**0.5
        last = (model.embeddings.cls_emb * 32**0.5).expand(2, -1, -1)
        at = torch.tensor([[*range(8), -1]] * 2)
        got = spec.encoding(0).embed(torch.cat([words, last], dim=1), posenc.Positions.at(at))
    result.close("what enters the first layer", got, whole, 8.0)  # angles to 7 in fp32
    seen = calls(model, input_ids=ids, attention_mask=torch.ones_like(ids))[0].mask
    result.equal("later tokens are hidden", spec.layers[0].causal, bool((seen[0, 0].triu(1)[0, 1:] < 0).all()))
    assert calls(model, input_ids=ids)[0].mask is None, "there is a mask without an attention mask now: the finding is old"
    assert not spec.layers[1].uses
    return result
