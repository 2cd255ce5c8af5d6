"""Models put together from a text model and towers for images, video or sound: each part is read as what it is."""

from __future__ import annotations

from copy import copy
from typing import Any

from posenc.dialects.family import decoder, family, head_width, parts, read
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import PositionSpec

STARTS = (
    "text: (time, row, column) are equal and count on by one; an image starts where the text before it ends, row and "
    "column counted from there in merged patches; text goes on after the larger of its two sides"
)
FRAMES = STARTS + "; every frame of a video is an image of its own, with text between"
CLIPS = STARTS + "; a clip is one image whose time counts frames, so that text after it may stand before its last frames"
SECONDS = CLIPS.replace("counts frames", "counts ⌊frame · second_per_grid_ts · tokens_per_second⌋")
MERGED = CLIPS.replace("counts frames", "counts temporal_merge_size frames as one")
OMNI = (
    "text and sound: (time, row, column) are equal and count on by one; an image or clip starts after all before it, "
    "time in 1/position_id_per_seconds of a second, and text goes on after its largest coordinate"
)
ONE = "0, 1, 2, … along the sequence, patches of images counted like words"
BETWEEN = "an image and text meet in a shared space only; each part counts its own tokens"


# --- three coordinates ------------------------------------------------------------------------------------------------


@family("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "cohere_compass")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(_vision_named(keys), "text_config", "vision_config"), coordinates=FRAMES)


@family("cosmos3_edge", "glm4v", "glm4v_moe", "glm46v", "glm_ocr")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=FRAMES)


@family("cosmos3_omni")
def _(keys: Keys) -> PositionSpec:
    """The vision tower is Qwen3-VL's, whatever model_type its section says."""
    named = _section_named(keys, "vision_config", "qwen3_vl_vision")
    return PositionSpec(keys.family, parts=parts(named, "text_config", "vision_config"), coordinates=FRAMES)


@family("qwen2_vl")
def _(keys: Keys) -> PositionSpec:
    return _flat(keys, CLIPS)


@family("paddleocr_vl")
def _(keys: Keys) -> PositionSpec:
    return _flat(keys, CLIPS)


@family("qwen2_5_vl")
def _(keys: Keys) -> PositionSpec:
    return _flat(keys, SECONDS)


@family("ernie4_5_vl_moe")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=MERGED)


@family("glm_image")
def _(keys: Keys) -> PositionSpec:
    """Images that are to be drawn have their places beforehand, the last grid first."""
    said = STARTS.replace("in merged patches", "in patches") + "; images to come follow, each a grid, the last one first"
    found = parts(keys, "text_config", "vision_config", "vq_config")
    return PositionSpec(keys.family, parts=found, coordinates=said)


@family("colqwen2")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config"), coordinates="those of the model in vlm_config")


# --- with sound -------------------------------------------------------------------------------------------------------


@family("qwen2_5_omni")
def _(keys: Keys) -> PositionSpec:
    found = parts(keys, "thinker_config", "talker_config", "token2wav_config")
    return PositionSpec(keys.family, parts=found, coordinates=OMNI)


@family("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
def _(keys: Keys) -> PositionSpec:
    """Qwen2.5 cuts times to whole numbers, Qwen3 leaves them as they are."""
    keys.whole("position_id_per_seconds", 25)
    whole = keys.family == "qwen2_5_omni_thinker"
    if not whole:
        keys.find(
            "note",
            "position_id_per_seconds",
            "frames stand at fractions of it where their times do, and so does "
            "the text after them: positions are real numbers",
        )
    found = parts(keys, "text_config", "vision_config", "audio_config")
    return PositionSpec(keys.family, parts=found, coordinates=OMNI + ("; times are cut to whole numbers" if whole else ""))


@family("qwen2_5_omni_token2wav")
def _(keys: Keys) -> PositionSpec:
    found = parts(keys, "dit_config", "bigvgan_config")
    return PositionSpec(keys.family, parts=found, coordinates="frames of sound, from 0")


@family("qwen3_omni_moe")
def _(keys: Keys) -> PositionSpec:
    """Sections for speech have no model_type; without them the classes assume sizes that the file does not say."""
    said = {
        name: f"qwen3_omni_moe_{name.removesuffix('_config')}"
        for name in ("talker_config", "code2wav_config")
        if keys.has(name)
    }
    return PositionSpec(keys.family, parts=parts(keys, "thinker_config", **said), coordinates=OMNI)


@family("qwen3_omni_moe_talker")
def _(keys: Keys) -> PositionSpec:
    found = parts(
        keys, text_config="qwen3_omni_moe_talker_text", code_predictor_config="qwen3_omni_moe_talker_code_predictor"
    )
    return PositionSpec(keys.family, parts=found, coordinates=OMNI)


@family("qwen3_omni_moe_code2wav")
def _(keys: Keys) -> PositionSpec:
    """Halves paired, every layer in a window of sliding_window frames."""
    kinds = ["sliding_attention"] * keys.whole("num_hidden_layers")
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)


@family("qwen3_asr")
def _(keys: Keys) -> PositionSpec:
    found = parts(keys, "audio_config", text_config="qwen3")
    return PositionSpec(keys.family, parts=found, coordinates=ONE.replace("patches of images", "frames of sound"))


# --- one coordinate ---------------------------------------------------------------------------------------------------


@family(
    "video_llama_3",
    "mllama",
    "granite_docling",
    "minimax_m3_vl",
    "mistral3",
    "shieldgemma2",
    "minicpmv4_6",
    "minicpmv4_7",
    "minicpm_ocr",
)
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=ONE)


@family("kimi_k25")
def _(keys: Keys) -> PositionSpec:
    """Published files call the text model kimi_k2, which is DeepSeek-V3's code."""
    inner = keys.table("text_config")
    named = _section_named(keys, "text_config", "deepseek_v3") if inner.get("model_type") == "kimi_k2" else keys
    return PositionSpec(keys.family, parts=parts(named, "text_config", "vision_config"), coordinates=ONE)


@family("molmo2")
def _(keys: Keys) -> PositionSpec:
    """Published files call the vision section vit_config."""
    old = keys.has("vit_config") and not keys.has("vision_config")
    named = _section_named(keys, "vit_config", "molmo2_vision") if old else keys
    vision = "vit_config" if old else "vision_config"
    return PositionSpec(keys.family, parts=parts(named, "text_config", vision, "adapter_config"), coordinates=ONE)


@family("siglip", "siglip2", "aimv2")
def _(keys: Keys) -> PositionSpec:
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=BETWEEN)


# --- sections under other names ---------------------------------------------------------------------------------------


def _section_named(keys: Keys, section: str, model_type: str) -> Keys:
    """The same keys, with another model_type in one section. What is read is still noted with the caller."""
    if not keys.has(section):
        return keys
    made = copy(keys)
    made.data = keys.data | {section: {**keys.table(section), "model_type": model_type}}
    return made


def _vision_named(keys: Keys) -> Keys:
    """Old files give the vision section the model_type of the whole."""
    old = keys.table("vision_config").get("model_type") == keys.family
    return _section_named(keys, "vision_config", f"{keys.family}_vision") if old else keys


def _flat(keys: Keys, coordinates: str) -> PositionSpec:
    """Published files have the text model's keys beside vision_config, not in a section of their own."""
    vision = parts(_vision_named(keys), "vision_config")
    if keys.has("text_config"):
        return PositionSpec(keys.family, parts=(*parts(keys, "text_config"), *vision), coordinates=coordinates)
    flat: dict[str, Any] = {key: value for key, value in keys.data.items() if key != "vision_config"}
    keys.read |= dict.fromkeys(flat)
    text = read(Keys(flat, f"{keys.family}_text", keys.path, defaults=keys.base_may_be_default), "text_config")
    return PositionSpec(keys.family, parts=(text, *vision), coordinates=coordinates)
