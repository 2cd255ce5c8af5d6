"""PaliGemma and PI0: a text model that counts image patches like words, with its own start of counting."""

from __future__ import annotations

from posenc.dialects.family import family, parts
from posenc.dialects.keys import Keys
from posenc.dialects.spec import PositionSpec


@family("paligemma")
def paligemma(keys: Keys) -> PositionSpec:
    """Counted from 1. Under rotation only differences matter, but a cache of other numbers does not fit."""
    keys.note("model_type", "the first token stands at 1, not 0, where no position_ids are given")
    keys.note("text_config", "tokens whose token_type_ids are 0, image and prompt, see each other both ways")
    return PositionSpec(
        keys.family,
        parts=parts(keys, "text_config", "vision_config"),
        coordinates="1, 2, 3, … along the sequence, patches of images counted like words",
    )


@family("pi0")
def pi0(keys: Keys) -> PositionSpec:
    """Actions are counted on from image and prompt, whose keys they see in every layer."""
    keys.note(
        "dit_config",
        "the state, then actions stand behind the prompt; actions see each other both ways. "
        "The time of denoising is a sinusoid beside the actions, no position of theirs",
    )
    keys.warning(
        "vlm_config",
        "without attention_mask the prompt is counted from 1 and what follows as if from 0: "
        "the state stands where the last word does; a mask of ones is not the same as none",
    )
    where = "0, 1, 2, … over the tokens that the mask keeps, images, words, state and actions"
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config", "dit_config"), coordinates=where)
