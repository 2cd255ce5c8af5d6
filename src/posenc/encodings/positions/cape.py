"""CAPE: in training, positions are shifted, jittered and stretched at random, and are real numbers.

    p' = λ·(p + Δ + ε_p),   Δ ~ U(-D, D),  ε_p ~ U(-e, e),  ln λ ~ U(-ln L, ln L);   Δ and λ of the row, ε_p of the token

Likhomanenko et al. 2021, "CAPE: Encoding Relative Positions with Continuous Augmented Positional Embeddings".
With e up to 0.5 tokens keep their order. DAPE was also named CAPE once.
"""

from __future__ import annotations

import math

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def cape(
    batch: int,
    length: int,
    *,
    max_shift: float = 5.0,
    max_jitter: float = 0.5,
    max_stretch: float = 1.03,
    generator: torch.Generator | None = None,
) -> Positions:
    """Augmented real positions, for encodings that read real numbers: sinusoids in the paper.

    batch        rows
    length       tokens of a row
    max_shift    D, in positions; 5 in the paper's recipe for translation
    max_jitter   e, in positions, up to 0.5
    max_stretch  L, from 1
    generator    the source of the random numbers; torch's own if left out

    In use, with neither shift nor jitter nor stretch, positions are Positions.arange(batch, length).
    Raises ValueError for numbers outside these ranges.
    """
    for name, value, low, high in (
        ("max_shift", max_shift, 0.0, math.inf),
        ("max_jitter", max_jitter, 0.0, 0.5),
        ("max_stretch", max_stretch, 1.0, math.inf),
    ):
        if not low <= value <= high or math.isinf(value):
            raise ValueError(f"{name}: expected a number from {low:g} to {high:g}, got {value!r}")

    def drawn(most: float, *shape: int) -> torch.Tensor:
        return (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) * most

    plain = torch.arange(length, dtype=torch.float64)
    moved = plain + drawn(max_shift, batch, 1) + drawn(max_jitter, batch, length)
    return Positions.at(moved * drawn(math.log(max_stretch), batch, 1).exp())


ENTRY = Entry(
    name="cape",
    class_name="Positions",
    builder="cape",
    title=Words("CAPE", "连续增强位置"),
    kind="positions",
    published="2021-06",
    formula="λ(p + Δ + ε_p)",
    also_called=(
        "continuous_augmented_positional_embeddings",
        "cape1d",
        "augmented_positions",
    ),
    used_by=(
        Words(
            "research: speech, images and translation by its authors",
            "研究：作者的语音、图像与翻译实验",
        ),
    ),
    source="Likhomanenko et al. 2021, arXiv 2106.03143",
    idea=Words(
        "In training, positions are real numbers: shifted and stretched together, and each moved a little by "
        "itself. An encoding added to the input so learns relative positions, and other rates and lengths in use "
        "do not surprise it. In use, positions are plain.",
        "训练时位置取实数：整体平移和伸缩，每个再单独作微小移动。加在输入上的编码因此学到相对位置，使用时遇到别的采"
        "样率和长度也不意外。使用时位置照常。",
    ),
    latex=r"p' = \lambda\,(p + \Delta + \varepsilon_p)",
    breaks=Words(
        "It suits encodings that read real numbers, not tables; a stretch too large blurs which token is next.",
        "只适合读取实数的编码，不适合表；伸缩过大时难以分清相邻的词。",
    ),
    options={
        "max_shift": "D，以位置计；论文的翻译设置为 5",
        "max_jitter": "e，以位置计，最大 0.5",
        "max_stretch": "L，至少 1",
    },
)
