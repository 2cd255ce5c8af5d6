"""Two towers that meet in a shared space only: which families they are."""

from __future__ import annotations

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, made_of, proof, spec_of
from posenc.dialects.weights import find

INSIDE = {"text_config": "text_model", "vision_config": "vision_model"}


@proof("align", "altclip", "blip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2", "owlv2", "owlvit", "tipsv2",
       "vision-text-dual-encoder")  # fmt: skip
def _(model_type: str) -> Proof:
    result = made_of(model_type, "a tower for text and one for images, each with its own positions", INSIDE)
    told_apart(result)
    return result


def told_apart(result: Proof) -> None:
    """Every weight that posenc names is in the whole model's checkpoint once."""
    config = CONFIG_MAPPING[result.model_type]()
    with torch.device("meta"):
        state = build(config, attention=None).state_dict()
    keys = [weight.key for _, part in spec_of(config, defaults=True).walk() for layer in part.layers for use in layer.uses
            for weight in use.weights]  # fmt: skip
    for key in keys:
        find(state, key)
    assert len(keys) == len(set(keys))
    result.exact.append(f"names of {len(keys)} weights in a checkpoint of both")


@proof("vision-encoder-decoder")
def _(model_type: str) -> Proof:
    parts = {"encoder": "encoder", "decoder": "decoder"}
    return made_of(model_type, "an encoder of images and a decoder of text", parts, None, "VisionEncoderDecoderModel")
