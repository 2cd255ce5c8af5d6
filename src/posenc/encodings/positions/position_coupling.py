"""Position coupling for addition: digits of the same significance have the same position in all operands and the answer.

    $   a₂    a₁    a₀    +   b₂    b₁    b₀    =   c₀    c₁    c₂    c₃
    0   s+3   s+2   s+1   s   s+3   s+2   s+1   s   s+1   s+2   s+3   s+4

Cho et al. 2024, "Position Coupling: Improving Length Generalization of Arithmetic Transformers Using Task Structure",
section 3. s is drawn for each row in training and is 1 in use. Operands are padded with zeros to one length in the paper,
and the answer is written from its least significant digit on. With a plain answer, "=" has s here, as in the authors' code
for several operands; their code for two gives it the position after the answer's first digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def position_coupling(
    lengths: Sequence[int],
    *,
    answer: int | None = None,
    reversed_operands: bool = False,
    reversed_answer: bool = True,
    batch: int = 1,
    max_start: int = 1,
    generator: torch.Generator | None = None,
) -> Positions:
    """Positions of a start token, operands joined by "+", "=" and the answer.

    lengths            digits of every operand
    answer             digits of the answer; None: one more than the longest operand has
    reversed_operands  operands begin with their least significant digit
    reversed_answer    so does the answer
    batch              rows, of the same lengths
    max_start          s is drawn from 1 … max_start for every row
    generator          the source of the random numbers; torch's own if left out

    Raises ValueError for an operand without digits, and where there is none.
    """
    if not lengths:
        raise ValueError("lengths: expected the digits of at least one operand, got none")
    for length in lengths:
        checks.whole(lengths=length)
    answer = max(lengths) + 1 if answer is None else answer
    checks.whole(answer=answer, batch=batch, max_start=max_start)
    places = [place for length in lengths for place in (0, *_places(length, reversed_operands))][1:]
    places += [0, *_places(answer, reversed_answer)]
    start = 1 + torch.randint(max_start, (batch, 1), generator=generator)
    return Positions.at(torch.cat([torch.zeros_like(start), start + torch.tensor(places)], dim=1))


def _places(length: int, backwards: bool) -> list[int]:
    """1 for the least significant digit, in the order in which the digits are written."""
    return list(range(1, length + 1) if backwards else range(length, 0, -1))


ENTRY = Entry(
    name="position_coupling",
    class_name="Positions",
    builder="position_coupling",
    title=Words("Position coupling", "位置耦合"),
    kind="positions",
    published="2024-05",
    formula="s + 1 + significance for digits, s for + and =",
    also_called=("coupled_positions", "coupling"),
    used_by=(Words("research: arithmetic by its authors", "研究：作者的算术实验"),),
    source="Cho et al. 2024, arXiv 2405.20671, section 3, and the authors' code",
    idea=Words(
        "Tokens that belong together get the same position. In an addition these are the digits of the same "
        "significance, so that the model finds the digits to add at the same position, however long the numbers "
        "are. A learned table or another encoding reads the positions.",
        "相关的词元得到相同的位置。在加法中就是同一数位上的数字，因此无论数有多长，要相加的数字都在同一位置。这些位"
        "置由可学习的表或别的编码读取。",
    ),
    latex=(
        r"p = s + 1 + k \text{ for the digit of } 10^k, \quad p = s \text{ for } {+} \text{ and } {=}, \quad s \sim "
        r"U\{1, \dots, S\}"
    ),
    breaks=Words(
        "Each task needs a coupling of its own, and the layout of the text must be known. This one is for sums; "
        "the paper has others for products, copies and grids.",
        "每种任务需要自己的耦合方式，而且必须知道文本的格式。这里用于加法；论文还有乘法、复制和网格的方式。",
    ),
    differs=Words(
        "With a plain answer, = has s, as in the authors' code for several operands; their code for two gives it "
        "the position after the answer's first digit.",
        "答案不反写时，等号的位置为 s，与作者多操作数的代码一致；其双操作数代码给它答案首位之后的位置。",
    ),
    code="HanseulJo/position-coupling",
    options={
        "lengths": "每个操作数的位数",
        "answer": "答案的位数；None 为最长操作数的位数加一",
        "reversed_operands": "操作数从最低位写起",
        "reversed_answer": "答案从最低位写起",
        "batch": "行数，各行长度相同",
        "max_start": "每行的 s 从 1 … max_start 中抽取",
    },
)
