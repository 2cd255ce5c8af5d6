"""Two towers that meet in a shared space only: which families they are."""

from __future__ import annotations

from families.harness import Proof, made_of, proof

INSIDE = {"text_config": "text_model", "vision_config": "vision_model"}


@proof("align", "altclip", "blip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2", "owlv2", "owlvit", "tipsv2",
       "vision-text-dual-encoder")  # fmt: skip
def _(model_type: str) -> Proof:
    return made_of(model_type, "a tower for text and one for images, each with its own positions", INSIDE)


@proof("vision-encoder-decoder")
def _(model_type: str) -> Proof:
    parts = {"encoder": "encoder", "decoder": "decoder"}
    return made_of(model_type, "an encoder of images and a decoder of text", parts, None, "VisionEncoderDecoderModel")
