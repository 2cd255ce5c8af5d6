"""BiPE: a learned vector for a token's index within its segment, and RoPE for the number of the segment.

    x + table[n],   (R(s) q)·(R(s') k)        n the index within the segment, s and s' numbers of segments

He et al. 2024, "Two Stones Hit One Bird: Bilevel Positional Encoding for Better Length Extrapolation" (BiPE-RoPE), and the
authors' code. Positions are (n, s), which posenc.positions_by("bipe_ids", …) makes of the ends of sentences.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.combined import Stack
from posenc.encodings.bases.learned_axes import LearnedAxes
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def bipe(d_model: int, d_head: int, max_positions: int, *, base: float = 10000.0, layout: Layout = "half") -> Stack:
    """Stack of a table, which reads the first coordinate of a token, and RoPE, which reads the second.

    d_model        channels of the table
    d_head         channels of a head, even
    max_positions  rows of the table: tokens of the longest segment; 1024 in the authors' models
    base           of RoPE's frequencies
    layout         which channels make a pair

    Parameter: the table [max_positions, d_model]. Raises ValueError for an index beyond the table, a device assert off the
    CPU, and for sizes that do not fit.
    """
    checks.even(d_head=d_head)
    of_segments = frequencies.cycling(frequencies.rotary(d_head, base), (1,))
    within = LearnedAxes(d_model, (max_positions,), axes=2, reads=(0,))
    return Stack(within, RoPE(d_head, frequencies=of_segments, layout=layout))


ENTRY = Entry(
    name="bipe",
    class_name="Stack",
    builder="bipe",
    title=Words("BiPE", "双层位置编码"),
    kind="rotated",
    published="2024-01",
    needs=("parameters",),
    axes=2,
    positions='posenc.positions_by("bipe_ids", ends=(torch.arange(length) % 4 == 3)[None])',
    coordinates=Words(
        "The index of a word within its sentence and the number of the sentence, both from 0 (BiPE's get_bilevel_ids).",
        "词在句内的序号和句子的序号，都从 0 开始（BiPE 的 get_bilevel_ids）。",
    ),
    domains=("text",),
    small={"max_positions": 16},
    formula="x + table[n], R(s)q · R(s')k",
    also_called=("bilevel_positional_encoding", "bipe_rope", "bilevel"),
    used_by=(Words("research: language models by its authors", "研究：作者的语言模型"),),
    source="He et al. 2024, arXiv 2401.16421, and the authors' code",
    idea=Words(
        "A text is a row of segments, such as sentences, and segments have about the same length in short and in long "
        "texts. So a token gets a learned vector for its index within its segment, which training has seen, and RoPE "
        "turns by the number of the segment alone. Longer texts have more segments, but far fewer than tokens.",
        "文本由若干段（如句子）组成，段的长度在短文本和长文本中差不多。因此词在段内的序号用学到的向量，训练时都见过；"
        "RoPE 只按段的序号旋转。文本变长时段会变多，但远少于词数。",
    ),
    latex=r"x_{n,s} + T_n, \quad (R(s_i)\, q_i) \cdot (R(s_j)\, k_j)",
    breaks=Words(
        "Texts must be cut into segments, and the table ends: a longer segment is refused. Within a segment queries and "
        "keys do not turn, so that order is read from the vectors alone.",
        "文本必须先切成段，且表有尽头：更长的段会被拒绝。同一段内查询和键不旋转，顺序只能从向量中读出。",
    ),
    differs=Words(
        "The authors' code gives all tokens beyond the table its last row. BiPE-ALiBi, with 96 times ALiBi's slopes over "
        "the numbers of segments, is not here.",
        "作者的代码让超出表的词都用最后一行。BiPE-ALiBi（以 ALiBi 斜率的 96 倍作用于段的序号）未收录。",
    ),
    code="zhenyuhe00/BiPE",
    options={
        "d_model": "表的通道数",
        "max_positions": "表的行数：最长的段的词数；作者的模型为 1024",
        "base": "RoPE 频率的底数",
    },
)
