"""Six bugs that libraries have shipped, each on the scores that it changes.

right  [i, j]  the scores as they should be; NaN where masked
wrong  [i, j]  the same scores with the bug

Fact `bug` says what goes wrong, how it is mended and where it was reported.
Legend: i query, j key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.support.languages import Words

ORDER = 165
POSITION = "i"

SETUP = """import torch
import posenc

random = torch.Generator().manual_seed(0)
q, k = torch.randn(2, 1, 1, 40, 32, generator=random, dtype=torch.float64)
at = posenc.Positions.arange(1, 40)


def scores(q, k):
    return (q @ k.mT)[0, 0] / 32**0.5

"""
MASKED = """
later = torch.ones(40, 40, dtype=torch.bool).triu(1)
right, wrong = (one.masked_fill(later, float("nan")) for one in (right, wrong))
"""


@dataclass(frozen=True)
class Bug:
    what: Words
    mend: Words
    report: str
    python: str


BUGS = {
    "bf16_positions": Bug(
        Words(
            "Positions are cast to bfloat16, which has 8 significant bits: from 1000 to 1039 it holds only multiples of 4, "
            "so that four neighbours get the same angle.",
            "位置先转成 bfloat16，它只有 8 位有效数字：1000 到 1039 之间只剩 4 的倍数，相邻四个位置的角度相同。",
        ),
        Words(
            "Compute positions and angles in fp32 or fp64, and round only the result.",
            "位置和角度用 fp32 或 fp64 计算，只舍入最后的结果。",
        ),
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
        """rope = posenc.create("rope", d_head=32)
positions = torch.arange(1000, 1040)[None]
cast = posenc.Positions.at(positions.bfloat16().double())
at = posenc.Positions.at(positions)
right = scores(rope.rotate(q, at, "query"), rope.rotate(k, at, "key"))
wrong = scores(rope.rotate(q, cast, "query"), rope.rotate(k, cast, "key"))
""",
    ),
    "layout": Bug(
        Words(
            "The weights were trained with neighbouring channels as pairs; the code pairs channel c with channel c + d/2.",
            "训练权重时，相邻的两个通道组成一对；代码却把通道 c 与通道 c + d/2 配成一对。",
        ),
        Words(
            "Permute the rows of the query and key weights once (posenc convert), or use the layout of the training.",
            "把查询和键的权重按行重排一次（posenc convert），或者使用训练时的排布。",
        ),
        "https://github.com/huggingface/transformers/issues/39687",
        """trained = posenc.create("rope", d_head=32, layout="interleaved")
code = posenc.create("rope", d_head=32, layout="half")
right = scores(trained.rotate(q, at, "query"), trained.rotate(k, at, "key"))
wrong = scores(code.rotate(q, at, "query"), code.rotate(k, at, "key"))
""",
    ),
    "left_padding": Bug(
        Words(
            "Ten padding tokens stand before the text, and the positions are counted from the first of them: every word "
            "gets the row of a position ten further on.",
            "文本前面有十个填充符，位置却从第一个填充符数起：每个词拿到的是十个位置之后的那一行。",
        ),
        Words("Count positions from the first token that is not padding.", "从第一个非填充的词开始数位置。"),
        "https://github.com/huggingface/transformers/issues/22161",
        """padding = 10
table = posenc.sinusoidal_table(40, 32, dtype=torch.float64)
right, wrong = torch.full((2, 40, 40), float("nan"), dtype=torch.float64)
text, counted, late = slice(padding, None), table[: 40 - padding], table[padding:]
right[text, text] = scores(q[:, :, text] + counted, k[:, :, text] + counted)
wrong[text, text] = scores(q[:, :, text] + late, k[:, :, text] + late)
""",
    ),
    "t5_buckets": Bug(
        Words(
            "The distance is one too large, so that every bucket of T5 begins one position too early "
            "and bucket 0 is never used.",
            "距离多算了 1：T5 的每个桶都早开始一个位置，0 号桶从不使用。",
        ),
        Words("The distance of a token to itself is 0 and belongs to bucket 0.", "词与自己的距离是 0，属于 0 号桶。"),
        "https://github.com/lucidrains/x-transformers/pull/10",
        """t5 = posenc.create("t5", n_heads=1, n_buckets=8, max_distance=40).double()
t5 = posenc.laws.draw_parameters(t5, seed=0).requires_grad_(False)
distance = torch.arange(40)[:, None] - torch.arange(40)
right = t5.at_distance(distance.flatten()).view(40, 40)
wrong = t5.at_distance(distance.flatten() + 1).view(40, 40)
""",
    ),
    "packed_documents": Bug(
        Words(
            "Two documents share one row. The positions run on from the first into the second, and the second "
            "attends to the first.",
            "两篇文档放在同一行。位置从第一篇一直数到第二篇，第二篇还能看到第一篇。",
        ),
        Words(
            "Start the positions of each document at 0, and mask the other documents: one of the two is not enough.",
            "每篇文档的位置从 0 开始，并遮住其他文档：只做其中一样还不够。",
        ),
        "https://github.com/pytorch/torchtitan/issues/2559",
        """lengths = torch.tensor([18, 22])
table = posenc.sinusoidal_table(40, 32, dtype=torch.float64)
restarted = torch.cat([table[:length] for length in lengths])
document = torch.arange(2).repeat_interleave(lengths)
right = scores(q + restarted, k + restarted).masked_fill(document[:, None] != document, float("nan"))
wrong = scores(q + table, k + table)
""",
    ),
    "stale_cache": Bug(
        Words(
            "Dynamic NTK raises the base when the text grows past 24 positions. The first 24 keys stay in the cache as "
            "they were rotated with the old base.",
            "文本超过 24 个位置时，动态 NTK 增大底数。缓存里的前 24 个键仍是按旧底数旋转的。",
        ),
        Words(
            "Choose one base for a request, or rotate the cached keys again.",
            "一次请求只用一个底数，或者把缓存的键重新旋转。",
        ),
        "https://github.com/huggingface/transformers/issues/25104",
        """old, new = (posenc.create("rope", d_head=32, base=base) for base in (10000.0, 10000.0 * 4 ** (32 / 30)))
keys = new.rotate(k, at, "key")
stale = torch.cat([old.rotate(k, at, "key")[:, :, :24], keys[:, :, 24:]], dim=2)
right = scores(new.rotate(q, at, "query"), keys)
wrong = scores(new.rotate(q, at, "query"), stale)
""",
    ),
}

if TYPE_CHECKING:
    Name = str
else:
    Name = Literal[tuple(BUGS)]


class Parameters(Base):
    bug: Name = "bf16_positions"


EXPORTED = tuple(Parameters(bug=name) for name in BUGS)


def data(asked: Parameters) -> Data:
    bug = BUGS[asked.bug]
    python = SETUP + bug.python + MASKED.rstrip() + "\n"
    made = run(python)
    right, wrong = made["right"], made["wrong"]
    seen = ~wrong.isnan()
    apart = (right.nan_to_num() - wrong)[seen].abs()
    facts = {
        "what": bug.what._asdict(),
        "mend": bug.mend._asdict(),
        "report": bug.report,
        "largest": float(apart.max()),
        "changed": float((apart > 1e-9).double().mean()),
        "limit": float(torch.stack([right, wrong]).nan_to_num().abs().max()),
    }
    return Data({"right": right, "wrong": wrong}, python, facts)
