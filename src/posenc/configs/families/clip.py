"""CLIP and similar two-tower models: learned tables of patches and of text tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import learned_table
from posenc.configs.families.marian import sinusoid
from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.families.vit import CLASS, ON_REQUEST, REGISTERS, image_tower, patch_table
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys, facts
from posenc.configs.patches import RASTER, square_side_of, tower
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import clauses

PATCHES = "embeddings.position_embedding"


@family(
    "clip_vision_model",
    "altclip_vision_model",
    "bridgetower_vision_model",
    "chinese_clip_vision_model",
    "clipseg_vision_model",
    "git_vision_model",
    "kosmos_2_vision_model",
    "metaclip_2_vision_model",
    "owlv2_vision_model",
    "owlvit_vision_model",
)
def clip_vision_model(keys: Keys) -> PositionSpec:
    """A row for the class token, then one for each patch; bicubic interpolation for other sizes on request."""
    keys.note("image_size", ON_REQUEST)
    return image_tower(keys, square_table(keys, f"{PATCHES}.weight"), CLASS)


@family("blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model")
def blip_vision_model(keys: Keys) -> PositionSpec:
    """As CLIP, stored as a parameter of its own."""
    keys.note("image_size", ON_REQUEST)
    keys.warning(
        "image_size",
        say(
            "smaller images are accepted: without that request their patches read the first rows of "
            "the table, as if at other positions"
        ),
    )
    return image_tower(keys, square_table(keys, PATCHES), CLASS)


@family("flava_image_model")
def flava_image_model(keys: Keys) -> PositionSpec:
    """As ViT."""
    keys.note("image_size", ON_REQUEST)
    return image_tower(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("internvl_vision", "qianfan_ocr_vision")
def internvl_vision(keys: Keys) -> PositionSpec:
    """As ViT, interpolated to the size of every image; no positions if use_absolute_position_embeddings is false."""
    if not keys.flag("use_absolute_position_embeddings"):
        return tower(keys, [], coordinates=say("none: use_absolute_position_embeddings is false"))
    return image_tower(keys, patch_table(keys, mode="bicubic"), CLASS)


@family("janus_vision_model")
def janus_vision_model(keys: Keys) -> PositionSpec:
    """No class token."""
    keys.note("image_size", ON_REQUEST)
    return image_tower(keys, square_table(keys, f"{PATCHES}.weight", prefix=0))


@family("groupvit_vision_model")
def groupvit_vision_model(keys: Keys) -> PositionSpec:
    """No class token, one image size. Group tokens have learned vectors and no order."""
    keys.note("image_size", say("images must have this size: the table cannot be interpolated on request"))
    depths = keys.wholes("depths", (6, 3, 3))
    if not depths:
        raise ConfigError(f"{keys.where('depths')}: expected one number for each stage, got none")
    if keys.whole("num_hidden_layers") != sum(depths):
        keys.warning(
            "num_hidden_layers",
            say("{layers}, but depths make {depths} layers", layers=keys.whole("num_hidden_layers"), depths=sum(depths)),
        )
    where = clauses(RASTER, say("group tokens after the patches have none"))
    return stack_of(
        keys, [Layer(causal=False)] * sum(depths), embedding=[patch_table(keys, prefix=0)], length=None, coordinates=where
    )


@family("ovis2_vision")
def ovis2_vision(keys: Keys) -> PositionSpec:
    """No class token, one image size."""
    keys.note("image_size", say("images must have this size: the table is never interpolated"))
    return tower(keys, [], embedding=[square_table(keys, f"{PATCHES}.weight", prefix=0, mode=None)], coordinates=RASTER)


@family("xclip_vision_model")
def xclip_vision_model(keys: Keys) -> PositionSpec:
    """As CLIP, frame by frame; each frame's message token attends to those of other frames without positions."""
    keys.note("image_size", ON_REQUEST)
    keys.note("num_frames", say("frames exchange messages in every layer, without positions"))
    return image_tower(
        keys, square_table(keys, f"{PATCHES}.weight"), clauses(CLASS, say("each frame is a sequence of its own"))
    )


@family("tipsv2_vision_model")
def tipsv2_vision_model(keys: Keys) -> PositionSpec:
    """As DINOv2 with registers, but bilinear and antialiased."""
    use = patch_table(keys, mode="bilinear", antialias=True)
    return image_tower(keys, use, REGISTERS)


def square_table(keys: Keys, weight: str, *, prefix: int = 1, mode: str | None = "bicubic") -> Use:
    """The grid of a vision encoder that supports square images and square patches only."""
    square_side_of(keys)
    return patch_table(keys, weight, prefix=prefix, **({"mode": mode} if mode else {}))


WORDS = "embeddings.position_embedding.weight"


@family(
    "clip_text_model",
    "clipseg_text_model",
    "groupvit_text_model",
    "metaclip_2_text_model",
    "owlv2_text_model",
    "owlvit_text_model",
    "xclip_text_model",
)
def clip_text_model(keys: Keys) -> PositionSpec:
    """Causal attention."""
    return text_stack(keys, learned_table(keys, WORDS), causal=True)


@family("chinese_clip_text_model", "align_text_model", "flava_text_model")
def chinese_clip_text_model(keys: Keys) -> PositionSpec:
    """As BERT."""
    return text_stack(keys, learned_table(keys, "embeddings.position_embeddings.weight"))


@family("blip_text_model")
def blip_text_model(keys: Keys) -> PositionSpec:
    """As BERT. The direction of attention is an argument of the call, bidirectional by default; is_decoder is ignored."""
    keys.note(
        "is_decoder",
        say(
            "the direction of attention is an argument of the call: bidirectional as an encoder, causal "
            "as the decoder of captions and answers"
        ),
    )
    return text_stack(keys, learned_table(keys, "embeddings.position_embeddings.weight"))


@family("altclip_text_model", "bridgetower_text_model")
def altclip_text_model(keys: Keys) -> PositionSpec:
    """As RoBERTa."""
    use = padded_table(keys)
    causal = bool(keys.flag("is_decoder", False))
    return text_stack(keys, use, causal=causal, length=int(dict(use.arguments)["max_positions"]), coordinates=TOKENS)


def text_stack(keys: Keys, use: Use, causal: bool = False, **about: Any) -> PositionSpec:
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[use], **about)


@family("tipsv2_text_model")
def tipsv2_text_model(keys: Keys) -> PositionSpec:
    """Bidirectional attention; positions count padding. Embeddings are scaled by √hidden_size."""
    use = sinusoid(keys, "hidden_size", layout="sin_cos", denominator="d/2-1", odd="zero")
    return stack_of(keys, [Layer(causal=False)] * keys.whole("num_hidden_layers"), embedding=[use])


RENEWED = ("altclip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2")  # the others ignore text_config_dict

BETWEEN = say("each part counts its own tokens; images and text meet only in a shared embedding space")


@family(
    "clip",
    "align",
    "altclip",
    "blip",
    "chinese_clip",
    "clipseg",
    "groupvit",
    "metaclip_2",
    "owlv2",
    "owlvit",
    "tipsv2",
    "vision-text-dual-encoder",
)
def clip(keys: Keys) -> PositionSpec:
    keys = with_old_sections(keys, "text_config", "vision_config") if keys.family in RENEWED else keys
    return PositionSpec(keys.family, parts=towers(keys), coordinates=BETWEEN)


SHARED_NAME = "embeddings.position_embedding.weight"  # what both towers of CLIP call their table

TOWERS = {"text_config": "text_model", "vision_config": "vision_model"}


def towers(keys: Keys) -> tuple[PositionSpec, ...]:
    """Both towers; tables of the same name are told apart by the name of their tower."""

    def apart(use: Use, place: str) -> Use:
        weights = (replace(w, key=f"{place}.{w.key}") if w.key == SHARED_NAME else w for w in use.weights)
        return replace(use, weights=tuple(weights))

    specs = parts(keys, *TOWERS)
    names = [weight.key for part in specs for layer in part.layers for use in layer.uses for weight in use.weights]
    if names.count(SHARED_NAME) < 2:
        return specs
    return tuple(
        replace(
            part,
            layers=tuple(
                replace(layer, uses=tuple(apart(use, TOWERS[part.part]) for use in layer.uses)) for layer in part.layers
            ),
        )
        for part in specs
    )


def with_old_sections(keys: Keys, *sections: str) -> Keys:
    """Old files have text_config_dict beside text_config: it overrides text_config, together with its class's defaults."""
    result = keys
    for section in sections:
        older = keys.table(f"{section}_dict")
        if not keys.has(f"{section}_dict"):
            continue
        newer = keys.table(section)
        model_type = keys.facts["parts"][section]["model_type"]
        merged = {**newer, **facts()[model_type]["defaults"], **older, "model_type": model_type}
        lost = sorted(key for key, value in newer.items() if key in merged and merged[key] != value)
        if lost:
            keys.error(f"{section}_dict", say("overrides {section} in {lost}", section=section, lost=", ".join(lost)))
        result = result.replaced({section: merged})
    return result
