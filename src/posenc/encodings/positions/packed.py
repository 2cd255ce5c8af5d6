"""Documents packed into one row: each counts from 0 and sees itself only.

    p = index in its document

Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination", section 3.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def packed(lengths: Sequence[int]) -> Positions:
    """`Positions.packed` of documents with these lengths.

    lengths  tokens of each document

    Raises ValueError for a length that is not positive.
    """
    if not lengths:
        raise ValueError("lengths: expected at least one document, got none")
    for length in lengths:
        checks.whole(lengths=length)
    return Positions.packed([0, *itertools.accumulate(lengths)])


ENTRY = Entry(
    name="packed",
    class_name="Positions",
    builder="packed",
    title=Words("Packed documents", "打包的文档"),
    kind="positions",
    published="2021-07",
    formula="p = index in its document",
    also_called=(
        "sequence_packing",
        "cu_seqlens",
        "document_mask",
    ),
    used_by=(Words("most training frameworks", "大多数训练框架"),),
    source="Krell et al. 2021, arXiv 2107.02027, section 3.2",
    idea=Words(
        "Short texts are put one after the other into one row, which wastes no padding. Each counts its positions "
        "from 0, and tokens do not see other texts. Every encoding works with it unchanged.",
        "把短文本接连放进一行，不浪费填充。每篇从 0 开始编号，词看不见别的文本。所有编码都无需改动即可使用。",
    ),
    latex=r"p = t - \mathrm{start}(\mathrm{document}(t))",
    starts=("scratch", "trained"),
    breaks=Words(
        "Attention must respect the documents; a kernel that knows only a causal mask mixes the texts.",
        "注意力必须遵守文档边界；只有因果掩码的内核会把文本混在一起。",
    ),
    options={
        "lengths": "每篇文档的词数",
    },
)
