"""PaliGemma and PI0: a text model that counts image patches like words, with its own start of counting."""

from __future__ import annotations

from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("paligemma")
def paligemma(keys: Keys) -> PositionSpec:
    """Counted from 1. RoPE depends on differences only, but a cache with other numbers does not fit."""
    keys.note("model_type", say("the first token is at 1, not 0, if no position_ids are given"))
    keys.note("text_config", say("attention among tokens whose token_type_ids are 0, image and prompt, is bidirectional"))
    return PositionSpec(
        keys.family,
        parts=parts(keys, "text_config", "vision_config"),
        coordinates=say("1, 2, 3, … along the sequence; image patches count like text tokens"),
    )


@family("pi0")
def pi0(keys: Keys) -> PositionSpec:
    """Actions continue the positions of image and prompt, and attend to their keys in every layer."""
    keys.note(
        "dit_config",
        say(
            "the state and the actions follow the prompt; attention among actions is bidirectional. "
            "Denoising time is a sinusoid concatenated to the actions, not a position"
        ),
    )
    keys.warning(
        "vlm_config",
        say(
            "without attention_mask the prompt is counted from 1 and what follows as if from 0: the "
            "state gets the position of the last word. A mask of ones is not the same as no mask"
        ),
    )
    where = say("0, 1, 2, … over unmasked tokens: images, words, state and actions")
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config", "dit_config"), coordinates=where)
