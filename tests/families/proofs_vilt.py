"""posenc.configs.families.vilt, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, config_of, folder_of, proof, spec_of, tokens
from families.proofs_vit import SMALL, picture, places, randomly
from posenc.configs.weights import with_weights


def words_of(result: Proof, spec: Any, module: torch.nn.Module, state: Any, norm: torch.nn.Module, **inputs: Any) -> None:
    """What enters the layer norm of the words' embeddings, token types set to zero."""
    entered: list[Tensor] = []
    hook = norm.register_forward_pre_hook(lambda layer, given: entered.append(given[0]))
    text = tokens((2, 9))
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "token_type" in name:
                parameter.zero_()
        module(input_ids=text, **inputs)
        got = with_weights(spec, 0, state).embed(module.word_embeddings(text), posenc.Positions.arange(2, 9))
    hook.remove()
    result.close("what words get", got, entered[0])


@proof("vilt")
def vilt(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for words; a grid for patches, bilinear with aligned corners")
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, max_position_embeddings=12)
    model, spec = randomly(build(config, attention=None), "position_embeddings"), spec_of(config)
    state, embeddings = model.state_dict(), model.embeddings
    words_of(result, spec["words"], embeddings.text_embeddings, state, embeddings.text_embeddings.LayerNorm)
    encoding = with_weights(spec["patches"], 0, state)
    for height, width in ((5, 5), (3, 7), (8, 4)):
        image = picture(height, width)
        with torch.no_grad():
            found, _, (index, _) = embeddings.visual_embed(image, torch.ones(1, 2 * height, 2 * width), -1)
            patches = embeddings.patch_embeddings(image)[0].permute(1, 2, 0)
            chosen = patches[index[0, :, 0], index[0, :, 1]][None]
            alone = torch.cat([embeddings.cls_token, chosen], dim=1)
            first = places(height, width, 1, sized=True).coords[:, :1]
            sizes = torch.tensor([height, width]).expand(1, len(index[0]), 2)
            at = posenc.Positions.at(torch.cat([first, torch.cat([index, sizes], dim=-1)], dim=1))
            # theirs finds places in fp32
            result.close("what patches of images of three shapes get", encoding.embed(alone, at), found, 16.0)
    assert len(model.encoder.layer) == len(spec.layers) == 2
    assert not any(layer.uses for layer in spec.layers)
    return result


@proof("tvp")
def tvp(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for words; row and column vectors, summed, for patches")
    backbone = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    config = CONFIG_MAPPING[model_type](
        **{name: value for name, value in SMALL.items() if value is not None},
        max_position_embeddings=12,
        vocab_size=32,
        intermediate_size=16,
        max_grid_row_position_embeddings=7,
        max_grid_col_position_embeddings=9,
        backbone_config=backbone,
        max_img_size=16,
        visual_prompt_size=2,
    )
    model, spec = build(config, attention=None), spec_of(config)
    state = model.state_dict()
    words_of(result, spec["words"], model.embeddings, state, model.embeddings.layer_norm)
    features = torch.randn(1, 3, 7, 5, 32)
    with torch.no_grad():
        alone = features.mean(1)
        expected = model.visual_embeddings.add_2d_positional_embeddings(alone).flatten(1, 2)
        got = with_weights(spec["patches"], 0, state).embed(alone.flatten(1, 2), posenc.Positions.grid(7, 5))
    result.close("what patches get", got, expected, 2.0)  # three terms in another order
    result.equal("the tower", folder_of(model.vision_model.backbone.config), spec["backbone_config"].family)
    assert len(model.encoder.layer) == len(spec.layers) == 2
    assert not any(layer.uses for layer in spec.layers)
    try:  # the finding about batches
        model.visual_embeddings.add_2d_positional_embeddings(torch.randn(2, 4, 4, 32))
    except RuntimeError:
        return result
    raise AssertionError("TVP takes two videos at a time now: its finding is out of date")


@proof("git")
def git(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for words and, in videos, one for frames; a vision encoder")
    vision = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 8,
        "patch_size": 2,
    }
    config = config_of(model_type, **SMALL, vision_config=vision, max_position_embeddings=40, num_image_with_embedding=3)
    model = randomly(build(config, attention="eager"), "img_temporal_embedding.0", "img_temporal_embedding.2")
    spec = spec_of(config)
    state = model.state_dict()
    words_of(result, spec["words"], model.embeddings, state, model.embeddings.LayerNorm)
    video, entered, masks = torch.randn(2, 3, 3, 8, 8), [], []
    model.visual_projection.register_forward_pre_hook(lambda module, given: entered.append(given[0]))
    model.encoder.register_forward_pre_hook(
        lambda module, given, named: masks.append(named["attention_mask"]), with_kwargs=True
    )
    assert len(model.encoder.layer) == len(spec.layers) == 2
    with torch.no_grad():
        model(input_ids=tokens((2, 4)), pixel_values=video)
        alone = torch.cat([model.image_encoder(video[:, frame]).last_hidden_state for frame in range(3)], dim=1)
        at = posenc.Positions.at(torch.arange(3).repeat_interleave(17).expand(2, -1))
        got = with_weights(spec["frames"], 0, state).embed(alone, at)
    result.close("what patches of frames get", got, entered[0])
    seen = masks[0][0, 0] if masks[0].dtype == torch.bool else masks[0][0, 0] > -1e30
    expected = torch.ones(55, 55).tril().bool()
    expected[:51, :51] = True
    result.equal("patches see each other, words what stands before", seen, expected)
    counted: list[Tensor] = []
    model.embeddings.position_embeddings.register_forward_pre_hook(lambda module, given: counted.append(given[0]))
    with torch.no_grad():
        cache = model(input_ids=tokens((1, 4)), pixel_values=video[:1, 0], use_cache=True).past_key_values
        model(input_ids=tokens((1, 1)), past_key_values=cache, use_cache=True)
    assert counted[-1].item() == 4 + 17, "GIT counts words with a cache now: its finding is out of date"
    return result
