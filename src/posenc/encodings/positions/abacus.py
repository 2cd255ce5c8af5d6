"""Abacus: a digit's position is its place in its number; all other tokens share position 0.

    p = 1 + β, 2 + β, 3 + β, …   for the digits of each number in turn,   p = 0 for what is no digit

McLeish et al. 2024, "Transformers Can Do Arithmetic with the Right Embeddings", section 3. β is drawn once for the whole
batch in training, 0 … 99 in the authors' code, so that longer numbers meet known positions; in use it is 0. Numbers are
written with the least significant digit first, so that digits of the same significance have the same position. A learned
table turns the positions into vectors: posenc.create("learned", d_model=…, max_positions=…).
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
def abacus(digits: Bool[Tensor, "b t"], *, max_shift: int = 0, generator: torch.Generator | None = None) -> Positions:
    """Positions counted within every run of digits.

    digits     [b, t], True where a token is a digit
    max_shift  the largest β; 99 in the authors' training, 0 in use
    generator  the source of the random numbers; torch's own if left out

    Raises ValueError for a mask without tokens or a negative shift.
    """
    checks.whole(0, max_shift=max_shift)
    with_values(digits=digits)
    index = torch.arange(1, digits.shape[1] + 1, device=digits.device).expand_as(digits)
    before = index.masked_fill(digits, 0).cummax(dim=1).values  # the last token that is no digit, counted from 1
    shift = torch.randint(max_shift + 1, (), generator=generator).to(digits.device)
    return Positions.at((index - before + shift) * digits)


ENTRY = Entry(
    name="abacus",
    class_name="Positions",
    builder="abacus",
    title=Words("Abacus", "算盘位置"),
    kind="positions",
    published="2024-05",
    formula="1 + β, 2 + β, … within each number, 0 elsewhere",
    also_called=("abacus_embeddings", "abacus_positions", "digit_positions"),
    used_by=(Words("research: arithmetic by its authors", "研究：作者的算术实验"),),
    source="McLeish et al. 2024, arXiv 2405.17399, section 3, and the authors' code",
    idea=Words(
        "In arithmetic, what matters is the place of a digit in its number. Digits are counted from the start of their "
        "number, and tokens that are no digits share position 0. In training, all counts begin at a random offset, so "
        "that a model trained on short numbers knows the positions of long ones.",
        "算术中重要的是数字在其数中的位置。每个数的数字从该数的开头起编号，不是数字的词元都在位置 0。"
        "训练时编号从随机的偏移开始，因此在短数上训练的模型也认识长数的位置。",
    ),
    arguments={"digits": "(torch.arange(length) % 4 > 0)[None]"},
    latex=(
        r"p = \beta + 1, \beta + 2, \dots \text{ in each number}, \quad p = 0 \text{ elsewhere}, \quad \beta \sim "
        r"U\{0, \dots, B\}"
    ),
    breaks=Words(
        "Numbers must be written with the least significant digit first: from the most significant one on, digits "
        "of the same significance have different positions. Other tokens share one position, so that a second "
        "encoding must tell their order.",
        "数必须从最低位写起：若从最高位写起，同一数位的数字位置不同。其他词元都在同一位置，需另一种编码区分它们的顺序。",
    ),
    differs=Words(
        "Only the positions are here; a learned table makes vectors of them, as the authors' module does in one.",
        "这里只给出位置；作者的模块同时包含把位置变成向量的可学习表。",
    ),
    code="mcleish7/arithmetic",
    options={
        "digits": "[b, t]，数字词元为 True",
        "max_shift": "最大的 β；作者训练时为 99，使用时为 0",
    },
)
