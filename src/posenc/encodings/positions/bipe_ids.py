"""Bilevel positions: the index of a token within its segment, and the number of the segment.

    (n, s)   s counts the ends of segments before the token, n the tokens since the last of them

He et al. 2024, "Two Stones Hit One Bird: Bilevel Positional Encoding for Better Length Extrapolation", and the authors'
code, where full stops and line breaks end a segment and belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Bool


@checked
def bipe_ids(ends: Bool[Tensor, "b t"]) -> Positions:
    """Coordinates [b, t, 2]: index within the segment, number of the segment.

    ends  [b, t], True where a token is the last of its segment; the last token of the row need not be

    Raises ValueError for a mask without tokens.
    """
    with_values(ends=ends)
    begins = torch.cat([torch.ones_like(ends[:, :1]), ends[:, :-1]], dim=1)
    index = torch.arange(ends.shape[1], device=ends.device).expand_as(ends)
    within = index - index.masked_fill(~begins, 0).cummax(dim=1).values
    return Positions.at(torch.stack([within, begins.long().cumsum(dim=1) - 1], dim=-1))


ENTRY = Entry(
    name="bipe_ids",
    class_name="Positions",
    builder="bipe_ids",
    title=Words("Positions of BiPE", "BiPE 的位置"),
    kind="positions",
    published="2024-01",
    axes=2,
    domains=("text",),
    formula="(index in the segment, number of the segment)",
    also_called=("bilevel_ids", "get_bilevel_ids", "segment_positions"),
    used_by=("BiPE",),
    source="He et al. 2024, arXiv 2401.16421, and the authors' code",
    idea=Words(
        "A text is cut into segments, such as sentences. Each token has two numbers: its index within its segment, and "
        "how many segments came before. Both stay small while a text grows.",
        "文本被切成段，如句子。每个词有两个数：段内的序号，以及之前有多少段。文本变长时，两者都保持较小。",
    ),
    arguments={"ends": "(torch.arange(length) % 4 == 3)[None]"},
    latex=r"(n, s)_t = \Big(t - \max\{u \le t : \mathrm{begins}_u\},\; \sum_{u \le t} \mathrm{begins}_u - 1\Big)",
    breaks=Words(
        "What ends a segment must be chosen, and a text without such tokens is one long segment.",
        "必须选定段的结束标记；没有这种标记的文本就是很长的一段。",
    ),
    code="zhenyuhe00/BiPE",
    options={
        "ends": "[b, t]，词是其段的最后一个时为 True；一行的最后一个词可以不是",
    },
)
