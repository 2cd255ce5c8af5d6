"""posenc.configs.families.flava, compared with the models' own code in transformers."""

from __future__ import annotations

import re

import torch
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, config_of, made_of, proof, spec_of
from families.proofs_clip import told_apart
from posenc.configs.weights import with_weights

INSIDE = {"text_config": "text_model", "vision_config": "vision_model"}

NO_POSITIONS = {
    "align_vision_model": "a convolutional network",
    "flava_image_codebook": "a convolutional network",
    "flava_multimodal_model": "attention over the encoders' outputs, which already have positions",
    "janus_vqgan": "convolutions; attention among their outputs has no positions",
}

OF_POSITIONS = re.compile(r"(^|[._])(pos|position|positions|positional|rel_pos|relative|inv_freq|rotary|rope)([._]|$)")


@proof("xclip")
def xclip(model_type: str) -> Proof:
    result = made_of(model_type, "two encoders, and learned vectors for the frames of a video", INSIDE)
    told_apart(result)
    sizes = {
        "mit_hidden_size": 32,
        "mit_num_hidden_layers": 2,
        "mit_num_attention_heads": 2,
        "mit_intermediate_size": 16,
        "num_frames": 5,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
    }
    config = CONFIG_MAPPING[model_type](vision_config=sizes, projection_dim=32, prompt_num_attention_heads=2)
    model, spec = build(config, attention=None), spec_of(config)
    torch.nn.init.normal_(model.mit.position_embedding)
    entered: list[Tensor] = []
    model.mit.encoder.register_forward_pre_hook(
        lambda module, given, named: entered.append(named["inputs_embeds"]), with_kwargs=True
    )
    frames = torch.randn(2, 5, 32)
    with torch.no_grad():
        model.mit(frames)
        got = with_weights(spec, 0, model.state_dict()).embed(frames, posenc.Positions.arange(2, 5))
    result.close("what frames get", got, entered[0])
    assert len(model.mit.encoder.layers) == len(spec.layers) == 2
    assert not spec.layers[1].uses
    return result


@proof("bridgetower")
def bridgetower(model_type: str) -> Proof:
    result = made_of(model_type, "two encoders, and cross-modal layers that add nothing", INSIDE)
    config = CONFIG_MAPPING[model_type]()
    with torch.device("meta"):
        model = build(config, attention=None)
    spec = spec_of(config)
    across = [name for name, _ in model.named_parameters() if not name.startswith(("text_model.", "vision_model."))]
    result.equal("weights of positions outside the towers", [name for name in across if OF_POSITIONS.search(name)], [])
    assert len(model.cross_modal_text_layers) + len(model.cross_modal_image_layers) == len(spec.layers)
    assert not any(layer.uses for layer in spec.layers)
    return result


@proof("flava")
def flava(model_type: str) -> Proof:
    parts = {
        "text_config": "text_model",
        "image_config": "image_model",
        "multimodal_config": "multimodal_model",
        "image_codebook_config": "image_codebook",
    }
    result = made_of(model_type, "two encoders and a third stack that adds nothing", parts, None, "FlavaForPreTraining")
    upon = build(
        config_of("flava_multimodal_model", num_hidden_layers=2, use_cls_token=True), "FlavaMultimodalModel", attention=None
    )
    x, order = torch.randn(1, 6, 64), torch.tensor([3, 1, 5, 0, 4, 2])
    with torch.no_grad():
        once, again = (upon(y).last_hidden_state[:, 1:] for y in (x, x[:, order]))
    result.close("tokens in another order", once[:, order], again, 16.0)  # sums over tokens in another order
    return result
