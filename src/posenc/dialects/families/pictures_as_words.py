"""Text models that count what a picture gives like words: LLaVA and its kin. Each part is read as what it is."""

from __future__ import annotations

from copy import copy

from posenc.dialects.families.vision_language import FRAMES, ONE
from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys, facts
from posenc.dialects.own_parts import own_parts
from posenc.dialects.spec import PositionSpec


@family(
    "aria",
    "aya_vision",
    "cohere2_vision",
    "deepseek_vl",
    "fast_vlm",
    "got_ocr2",
    "hyperclovax_vision_v2",
    "idefics3",
    "internvl",
    "kosmos-2",
    "kosmos-2.5",
    "lfm2_vl",
    "lfm3_vl",
    "lighton_ocr",
    "llava",
    "llava_next",
    "llava_next_video",
    "llava_onevision",
    "ovis2",
    "perception_lm",
    "pp_chart2table",
    "qianfan_ocr",
    "smolvlm",
    "vipllava",
)
def _(keys: Keys) -> PositionSpec:
    return together(keys, "text_config", "vision_config")


@family("glmga")
def _(keys: Keys) -> PositionSpec:
    """GLM-4.6V's: an image has rows and columns among the words."""
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=FRAMES)


@family("video_llava")
def _(keys: Keys) -> PositionSpec:
    """One section for two towers alike, one of which sees the frames of videos."""
    keys.find(
        "note",
        "vision_config",
        "two towers of this kind, image_tower and video_tower, which sees each frame "
        "alone; their tables have one name, so that weights are read from one of them at a time",
    )
    return together(keys, "text_config", "vision_config")


@family("deepseek_vl_hybrid")
def _(keys: Keys) -> PositionSpec:
    return together(keys, "text_config", "vision_config", "high_res_vision_config")


@family("janus")
def _(keys: Keys) -> PositionSpec:
    """Images to be drawn are words of another vocabulary."""
    return together(keys, "text_config", "vision_config", "vq_config")


@family("blip-2", "instructblip", "instructblipvideo")
def _(keys: Keys) -> PositionSpec:
    """Learned vectors, which nothing tells apart but themselves, ask the image; their answers are counted like words."""
    return together(keys, "text_config", "vision_config", "qformer_config")


@family("exaone4_5")
def _(keys: Keys) -> PositionSpec:
    """The first files gave the text model a type of its own."""
    return together(named(keys, "text_config", exaone4_5_text="exaone4"), "text_config", "vision_config")


@family("idefics2")
def _(keys: Keys) -> PositionSpec:
    """The resampler is as wide as the text."""
    return together(keys, "text_config", "vision_config", "perceiver_config")


@family("paligemma")
def _(keys: Keys) -> PositionSpec:
    """Counted from 1. Under rotation only differences matter, but a cache of other numbers does not fit."""
    keys.find("note", "model_type", "the first token stands at 1, not 0, where no position_ids are given")
    keys.find("note", "text_config", "tokens whose token_type_ids are 0, image and prompt, see each other both ways")
    return PositionSpec(
        keys.family,
        parts=parts(keys, "text_config", "vision_config"),
        coordinates="1, 2, 3, … along the sequence, patches of images counted like words",
    )


@family("pi0")
def _(keys: Keys) -> PositionSpec:
    """Actions are counted on from image and prompt, whose keys they see in every layer."""
    keys.find(
        "note",
        "dit_config",
        "the state, then actions stand behind the prompt; actions see each other both ways. "
        "The time of denoising is a sinusoid beside the actions, no position of theirs",
    )
    keys.find(
        "warning",
        "vlm_config",
        "without attention_mask the prompt is counted from 1 and what follows as if from 0: "
        "the state stands where the last word does; a mask of ones is not the same as none",
    )
    where = "0, 1, 2, … over the tokens that the mask keeps, images, words, state and actions"
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config", "dit_config"), coordinates=where)


@family("fuyu")
def _(keys: Keys) -> PositionSpec:
    """Persimmon, which reads patches like words and has no tower. Published files have its keys beside the others."""
    known = {
        *facts()["persimmon"]["defaults"],
        *facts()["persimmon"]["names"],
        "rope_scaling",
        "rope_theta",
        "rope_parameters",
        "partial_rotary_factor",
    }
    moved = {name: value for name, value in keys.data.items() if name in known}
    if keys.has("text_config") or not moved:
        return together(keys, "text_config")
    for name in moved:
        keys.get(name, None)
    keys.find("note", "text_config", "not in the file: the class takes the keys beside it for the text model's")
    flat = copy(keys)
    flat.data = keys.data | {"text_config": {"partial_rotary_factor": 0.5, **moved, "model_type": "persimmon"}}
    return together(flat, "text_config")


@family("jev")
def _(keys: Keys) -> PositionSpec:
    """A head that scores answers, upon whatever model the file has inside."""
    return PositionSpec(keys.family, parts=parts(keys, "text_config"), coordinates="those of the model in text_config")


@family("colpali", "colmodernvbert")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config"), coordinates="those of the model in vlm_config")


def together(keys: Keys, *names: str) -> PositionSpec:
    return PositionSpec(keys.family, parts=own_parts(keys, *names), coordinates=ONE)


def named(keys: Keys, section: str, **types: str) -> Keys:
    """The same keys; a model type of that section that is among `types` becomes what stands there."""
    said = keys.table(section).get("model_type")
    if said not in types:
        return keys
    made = copy(keys)
    made.data = keys.data | {section: {**keys.table(section), "model_type": types[said]}}
    return made
