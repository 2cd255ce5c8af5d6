"""StreamingLLM: positions within the cache, which keeps the first tokens and the last ones.

    0 … sinks-1 for the first tokens,  sinks … sinks+window-1 for the last ones, wherever they stood in the text

Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.2. Cached keys move with
posenc.rerotate; see there.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def streaming_llm(length: int, *, sinks: int = 4, window: int = 1020) -> Positions:
    """The positions of what a cache of a text of `length` tokens holds: 0, 1, 2, … up to sinks + window.

    length  tokens of the text so far
    sinks   first tokens that are never evicted
    window  last tokens that are kept

    Raises ValueError for sizes that are not positive.
    """
    checks.whole(window=window)
    checks.whole(0, sinks=sinks)
    return Positions.arange(1, min(length, sinks + window))


ENTRY = Entry(
    name="streaming_llm",
    class_name="Positions",
    builder="streaming_llm",
    title=Words("StreamingLLM", "流式缓存位置"),
    kind="positions",
    published="2023-09",
    formula="p = index in the cache: sinks, then the last tokens",
    also_called=(
        "attention_sinks",
        "sink_cache",
        "streaming",
    ),
    used_by=(Words("serving frameworks: unlimited chats", "推理框架：无限长对话"),),
    example="""\
rope = posenc.create("rope", d_head=64)
keys = torch.randn(1, n_heads, 2000, 64)  # rotated at 0 … 1999
kept = torch.cat([keys[:, :, :4], posenc.rerotate(keys[:, :, -1020:], by=-976.0, encoding=rope)], dim=2)
at = posenc.positions_by("streaming_llm", length=2000)
""",
    source="Xiao et al. 2023, arXiv 2309.17453, section 3.2",
    idea=Words(
        "A chat without end keeps the first few tokens, which collect unused attention, and the last thousand. "
        "Positions are counted within the cache, so that they never leave the trained range. Cached keys move as "
        "the window does.",
        "没有尽头的对话只保留最初几个词（它们吸收多余的注意力）和最后一千个词。位置在缓存内编号，因此从不超出训练范"
        "围。窗口移动时，缓存的键也随之移动。",
    ),
    latex=r"p_t = \begin{cases} t & t < s \\ s + t - (n - w) & t \ge n - w \end{cases}",
    starts=("trained",),
    breaks=Words(
        "What was evicted is gone: the model reads on without end, but remembers only the window.",
        "被移出缓存的内容就没有了：模型可以一直读下去，但只记得窗口内的内容。",
    ),
    code="mit-han-lab/streaming-llm",
    options={
        "length": "到目前为止文本的词数",
        "sinks": "从不移出的最初若干词",
        "window": "保留的最后若干词",
    },
)
