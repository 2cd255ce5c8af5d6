"""PaliGemma and PI0: a text model that counts image patches like words, with its own start of counting."""

from __future__ import annotations

from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words


@family("paligemma")
def paligemma(keys: Keys) -> PositionSpec:
    """Counted from 1. RoPE depends on differences only, but a cache with other numbers does not fit."""
    keys.note(
        "model_type",
        "the first token is at 1, not 0, if no position_ids are given",
        "不给 position_ids 时，第一个词元在 1，而不是 0",
    )
    keys.note(
        "text_config",
        "attention among tokens whose token_type_ids are 0, image and prompt, is bidirectional",
        "token_type_ids 为 0 的词元（图像和提示）之间的注意力是双向的",
    )
    return PositionSpec(
        keys.family,
        parts=parts(keys, "text_config", "vision_config"),
        coordinates=Words(
            "1, 2, 3, … along the sequence; image patches count like text tokens",
            "沿序列 1, 2, 3, …；图块与文本词元一样计数",
        ),
    )


@family("pi0")
def pi0(keys: Keys) -> PositionSpec:
    """Actions continue the positions of image and prompt, and attend to their keys in every layer."""
    keys.note(
        "dit_config",
        "the state and the actions follow the prompt; attention among actions is bidirectional. "
        "Denoising time is a sinusoid concatenated to the actions, not a position",
        "提示之后是状态和动作；动作之间的注意力是双向的。去噪时间是与动作拼接的正余弦，不是位置",
    )
    keys.warning(
        "vlm_config",
        "without attention_mask the prompt is counted from 1 and what follows as if from 0: the "
        "state gets the position of the last word. A mask of ones is not the same as no mask",
        "没有 attention_mask 时，提示从 1 计数，其后如同从 0 计数：状态得到最后一个词的位置。全 1 的掩码与没有掩码不同",
    )
    where = Words(
        "0, 1, 2, … over unmasked tokens: images, words, state and actions",
        "对未被遮蔽的词元 0, 1, 2, …：图像、词、状态和动作",
    )
    return PositionSpec(keys.family, parts=parts(keys, "vlm_config", "dit_config"), coordinates=where)
