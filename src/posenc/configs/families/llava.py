"""LLaVA and similar: a text model that counts image patches like words. The family's own classes read the parts."""

from __future__ import annotations

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys, facts
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("video_llava")
def video_llava(keys: Keys) -> PositionSpec:
    """One section for two equal encoders, one for images and one for video frames."""
    keys.note(
        "vision_config",
        say(
            "two encoders of this kind: image_tower, and video_tower, which sees each frame alone. "
            "Their tables have the same name, so weights are read from one of them at a time"
        ),
    )
    return together(keys, "text_config", "vision_config")


@family("exaone4_5")
def exaone4_5(keys: Keys) -> PositionSpec:
    """Early files gave the text model a type of its own."""
    return together(named(keys, "text_config", exaone4_5_text="exaone4"), "text_config", "vision_config")


@family("fuyu")
def fuyu(keys: Keys) -> PositionSpec:
    """Persimmon, which reads image patches like words. Published files have its keys at the top level."""
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
    keys.note("text_config", say("not in the file: the class takes the top-level keys for it"))
    text = {"partial_rotary_factor": 0.5, **moved, "model_type": "persimmon"}
    return together(keys.replaced({"text_config": text}), "text_config")


def together(keys: Keys, *names: str) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=LIKE_TEXT)


def named(keys: Keys, section: str, **types: str) -> Keys:
    """The same keys; if the section's model type is among `types`, it is replaced by the given one."""
    model_type = keys.table(section).get("model_type")
    if model_type not in types:
        return keys
    return keys.replaced({section: {**keys.table(section), "model_type": types[model_type]}})
