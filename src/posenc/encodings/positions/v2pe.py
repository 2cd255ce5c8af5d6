"""V2PE: a visual token advances the position by a fraction of what a word does.

    p_1 = 0,   p_i = p_(i-1) + 1  for a word,   p_i = p_(i-1) + δ  for a visual token

Ge et al. 2024, "V2PE: Improving Multimodal Long-Context Capability of Vision-Language Models with Variable Visual Position
Encoding", section 3.2. In training the paper draws δ from 1, 1/2, 1/4, …, 1/256 for every image; in use it is chosen. The
authors' code rounds the last position of an image up before the next word (`rounded`). That is the same where an image's
tokens times δ are a whole number, as they are with 256 tokens and these δ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Bool


@checked
def v2pe(visual: Bool[Tensor, "b t"], *, delta: float = 1 / 16, rounded: bool = False) -> Positions:
    """Real positions of words and visual tokens.

    visual   [b, t], True where a token comes from an image
    delta    what a visual token advances the position by, above 0 and up to 1
    rounded  words after an image begin at a whole number, as in the authors' code

    Raises ValueError for a delta out of range and a mask without tokens.
    """
    checks.positive(delta=delta)
    if delta > 1:
        raise ValueError(f"delta: expected a number above 0 and up to 1, got {delta}")
    with_values(visual=visual)
    words = (~visual).cumsum(dim=1)
    index = torch.arange(1, visual.shape[1] + 1, device=visual.device).expand_as(visual)
    run = index - index.masked_fill(visual, 0).cummax(dim=1).values  # visual tokens since the last word
    advance = run.double() * delta
    ended = torch.zeros_like(advance)
    ended[:, 1:] = advance[:, :-1] * ~visual[:, 1:]  # of the image that a word follows at once
    past = (ended.ceil() if rounded else ended).cumsum(dim=1)
    position = words + past + advance
    return Positions.at(position - position[:, :1])


ENTRY = Entry(
    name="v2pe",
    class_name="Positions",
    builder="v2pe",
    title=Words("V2PE", "可变视觉位置"),
    kind="positions",
    published="2024-12",
    formula="p + 1 for a word, p + δ for a visual token",
    also_called=("variable_visual_position_encoding", "v2pe_fix", "rope_pos_id_stride"),
    used_by=("InternVL2-V2PE", "InternVL3"),
    source="Ge et al. 2024, arXiv 2412.09616, section 3.2, and the authors' code",
    idea=Words(
        "An image of hundreds of tokens would use up as many positions. Here a visual token advances the position by a "
        "fraction such as 1/16, so that long multimodal inputs stay within the positions seen in training. "
        "Encodings that read real numbers, RoPE among them, serve it.",
        "一张图像有数百个词元，会占用同样多的位置。这里每个视觉词元只让位置前进一个分数，例如 1/16，"
        "因此很长的多模态输入仍在训练过的位置范围内。适用于读取实数位置的编码，例如 RoPE。",
    ),
    arguments={"visual": "(torch.arange(length) % 8 > 2)[None]"},
    latex=(
        r"p_1 = 0, \quad p_i = p_{i-1} + \begin{cases} 1 & \text{a word} \\ \delta & \text{a visual token} "
        r"\end{cases}"
    ),
    breaks=Words(
        "With a small δ, neighbouring patches have nearly the same angles, so that the fast pairs alone tell them "
        "apart. Tables of whole positions cannot read real numbers.",
        "δ 很小时，相邻图块的角度几乎相同，只有最快的通道对能区分。整数位置的表不能读取实数。",
    ),
    differs=Words(
        "The authors' code rounds the last position of an image up before the next word: rounded=True. The two "
        "agree where an image's tokens times δ are a whole number.",
        "作者代码在下一个词之前把图像的最后位置向上取整：rounded=True。图像词元数乘 δ 为整数时两者相同。",
    ),
    code="OpenGVLab/V2PE",
    options={
        "visual": "[b, t]，来自图像的词元为 True",
        "delta": "一个视觉词元使位置前进多少，大于 0 且不超过 1",
        "rounded": "图像之后的词从整数开始，与作者代码一致",
    },
)
