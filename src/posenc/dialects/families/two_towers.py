"""Two towers that meet in a shared space only, CLIP and its kin: each part counts its own tokens."""

from __future__ import annotations

from copy import copy

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys, facts
from posenc.dialects.spec import PositionSpec

RENEWED = ("altclip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2")  # the others ignore text_config_dict
BETWEEN = "an image and text meet in a shared space only; each part counts its own tokens"


@family("align", "altclip", "blip", "chinese_clip", "clip", "clipseg", "groupvit", "metaclip_2", "owlv2", "owlvit",
        "tipsv2", "vision-text-dual-encoder")  # fmt: skip
def _(keys: Keys) -> PositionSpec:
    keys = renewed(keys, "text_config", "vision_config") if keys.family in RENEWED else keys
    return PositionSpec(keys.family, parts=parts(keys, "text_config", "vision_config"), coordinates=BETWEEN)


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
