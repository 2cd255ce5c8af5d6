"""Sinusoids kept only where they meet each other: the product of two positions' vectors, added to the score.

    logits += Σ_c cos((i - j)·ω_c) / r_h,   ω_c = base^(-2c/w) for c = 0 … w/2 - 1,   r_h = 8h/n for h = 1 … n heads

Chi et al. 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis", section 5. NeMo's
code takes c = 1 … w/2 and lowers all scores of a head by the same number, which no softmax sees.
Legend: h query heads, n distances, c waves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.encoding import DistanceBias, check_distances
from posenc.kernels.fast_path import constant
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class Sandwich(DistanceBias):
    """A sum of cosines of the distance, divided by a number of each head. No parameters, any length, integers or reals.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    width    w, twice as many as there are waves, even; 128 in the paper, whatever the model's width
    base     of the frequencies
    ratios   other numbers than 8h/n to divide by, one per head

    Time O(w·(queries + keys)) for a call on consecutive positions, O(w·queries·keys) elsewhere.
    """

    @checked
    def __init__(
        self, n_heads: int, *, width: int = 128, base: float = 10000.0, ratios: tuple[float, ...] | None = None
    ) -> None:
        checks.even(width=width)
        checks.positive(base=base)
        ratios = tuple(8 * h / n_heads for h in range(1, n_heads + 1)) if ratios is None else tuple(map(float, ratios))
        super().__init__(n_heads=n_heads, width=width, base=base, ratios=ratios)
        if len(ratios) != n_heads or not all(math.isfinite(ratio) and ratio != 0 for ratio in ratios):
            raise ValueError(f"ratios: expected a number other than 0 for each of {n_heads} heads, got {ratios}")
        self.ratios = ratios
        self.frequencies = tuple(base ** (-2 * c / width) for c in range(width // 2))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        waves = delta.abs().double()[:, None] * constant(self.frequencies, torch.float64, delta.device)
        return waves.cos().sum(dim=-1) / constant(self.ratios, torch.float64, delta.device)[:, None]

    def heads(self, start: int, stop: int) -> Sandwich:
        return Sandwich(**{**self.configuration, "n_heads": stop - start, "ratios": self.ratios[start:stop]})


ENTRY = Entry(
    name="sandwich",
    class_name="Sandwich",
    title=Words("Sandwich", "三明治偏置"),
    kind="biased",
    published="2022-12",
    formula="q·k + Σ cos((i-j)ω) / r",
    also_called=("sandwich_bias", "SandwichRelativePositionEmbedding", "receptive_field_alignment"),
    used_by=(Words("research: length extrapolation by its authors", "研究：作者用于长度外推"), "NeMo"),
    source="Chi et al. 2022, arXiv 2212.10356, section 5",
    idea=Words(
        "The sinusoidal encoding is not added to the words. What is kept of it is the product of the vectors of two "
        "positions, which depends on their distance alone and is added to the score. It falls about as the logarithm "
        "of the distance does; each head divides it by another number.",
        "正弦编码不加到词向量上，只保留两个位置的向量之积：它只取决于两者的距离，并加到分数上。"
        "它大致随距离的对数下降；每个头除以不同的数。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} + \frac{n}{8h} \sum_{c=0}^{w/2-1} \cos\big((i - j)\, b^{-2c/w}\big)",
    breaks=Words(
        "It does not fall steadily: a sum of waves swings, so that a token further away may have a higher score.",
        "它并非一路下降：波之和会起伏，较远的词分数可能更高。",
    ),
    options={
        "n_heads": "整个模型的查询头数；张量并行的各份取 heads(start, stop)",
        "width": "w，波数的两倍，偶数；论文为 128，与模型宽度无关",
        "base": "频率的底数",
        "ratios": "替代 8h/n 的除数，每个头一个",
    },
)
