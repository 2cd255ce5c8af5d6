"""Models put together from others, which add no positions of their own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys, facts
from posenc.dialects.spec import PositionSpec


@family("inkling2", "llama4", "muse_glimmer")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"))


@family("inkling_mm_model", "muse_spark")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config", "audio_config"))


@family("nemotron3_diarization")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "audio_config"))


@family("step3p7")
def _(keys: Keys) -> PositionSpec:
    """Whatever model types the file gives its parts, they are Step 3.7's own."""
    plain = copy(keys)
    plain.data = {name: _untyped(value) for name, value in keys.data.items()}
    return PositionSpec(keys.family, parts=parts(plain, text_config="step3p5", vision_config="step3p5_vision"))


def _untyped(value: Any) -> Any:
    return {key: inner for key, inner in value.items() if key != "model_type"} if isinstance(value, Mapping) else value


@family("hunyuan_vl")
def _(keys: Keys) -> PositionSpec:
    """Older files have the text model's keys beside vision_config."""
    if not keys.has("text_config") and keys.has("num_hidden_layers"):
        known = {
            *facts()["hunyuan_vl_text"]["defaults"],
            *facts()["hunyuan_vl_text"]["names"],
            "rope_scaling",
            "rope_theta",
        }
        moved = {name: value for name, value in keys.data.items() if name in known}
        keys.find("note", "text_config", "not in the file: the class takes the keys beside it for the text model's")
        inner = keys.data | {"text_config": moved | {"model_type": "hunyuan_vl_text"}}
        for name in moved:
            keys.get(name, None)
        keys = copy(keys)
        keys.data = inner
    where = (
        "0, 1, 2, … over all tokens, the same on every axis; but for the patches of an image the last three axes are "
        "(column, row, number of the image), each from 0"
    )
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=where)
