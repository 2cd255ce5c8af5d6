"""Two towers that meet in a shared space only, CLIP and its kin: each part counts its own tokens."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys, facts
from posenc.dialects.own_parts import own_parts
from posenc.dialects.spec import PositionSpec, Use

RENEWED = ("altclip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2")  # the others ignore text_config_dict
BETWEEN = "an image and text meet in a shared space only; each part counts its own tokens"


@family(
    "align",
    "altclip",
    "blip",
    "chinese_clip",
    "clip",
    "clipseg",
    "groupvit",
    "metaclip_2",
    "owlv2",
    "owlvit",
    "tipsv2",
    "vision-text-dual-encoder",
)
def _(keys: Keys) -> PositionSpec:
    keys = renewed(keys, "text_config", "vision_config") if keys.family in RENEWED else keys
    return PositionSpec(keys.family, parts=towers(keys), coordinates=BETWEEN)


ALIKE = "embeddings.position_embedding.weight"  # what both towers of CLIP call their table
PLACES = {"text_config": "text_model", "vision_config": "vision_model"}


def towers(keys: Keys) -> tuple[PositionSpec, ...]:
    """Both towers; tables of the same name are told apart by the tower that they are in."""

    def apart(use: Use, place: str) -> Use:
        weights = (replace(w, key=f"{place}.{w.key}") if w.key == ALIKE else w for w in use.weights)
        return replace(use, weights=tuple(weights))

    found = own_parts(keys, *PLACES)
    names = [weight.key for part in found for layer in part.layers for use in layer.uses for weight in use.weights]
    if names.count(ALIKE) < 2:
        return found
    return tuple(
        replace(
            part,
            layers=tuple(
                replace(layer, uses=tuple(apart(use, PLACES[part.part]) for use in layer.uses)) for layer in part.layers
            ),
        )
        for part in found
    )


@family("vision-encoder-decoder")
def _(keys: Keys) -> PositionSpec:
    """The decoder asks the encoder's patches, which bring their positions with them."""
    return PositionSpec(keys.family, parts=parts(keys, "encoder", "decoder"), coordinates="each part counts its own tokens")


def renewed(keys: Keys, *sections: str) -> Keys:
    """Old files have text_config_dict beside text_config: it wins, together with what its class assumes."""
    made = copy(keys)
    for section in sections:
        older = keys.table(f"{section}_dict")
        if not keys.has(f"{section}_dict"):
            continue
        newer = keys.table(section)
        model_type = keys.facts["parts"][section]["model_type"]
        merged = {**newer, **facts()[model_type]["defaults"], **older, "model_type": model_type}
        lost = sorted(key for key, value in newer.items() if key in merged and merged[key] != value)
        if lost:
            keys.find("error", f"{section}_dict", f"stands beside {section}, and wins in {', '.join(lost)}")
        made.data = made.data | {section: merged}
    return made
