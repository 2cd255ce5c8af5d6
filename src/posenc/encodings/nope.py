"""No encoding at all.

    logits = q·k / √d_head

Without a mask the output does not depend on order; with a causal mask, deeper layers can learn the order.
Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional Information";
Kazemnejad et al. 2023, section 3.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encoding import PositionalEncoding
from posenc.support.languages import Words


class NoPE(PositionalEncoding):
    """The base class under its own name: no seam is used."""

    def __init__(self) -> None:
        super().__init__()


ENTRY = Entry(
    name="nope",
    class_name="NoPE",
    title=Words("NoPE", "无位置编码"),
    kind="none",
    published="2022-03",
    formula="q·k/√d",
    also_called=("none", "no_position", "no positional encoding", "无位置编码"),
    used_by=(Words("SmolLM3 and Llama 4 (every fourth layer)", "SmolLM3 和 Llama 4（每四层一层）"), "Jamba", "Kimi-Linear"),
    source="Haviv et al. 2022, arXiv 2203.16634; Kazemnejad et al. 2023, arXiv 2305.19466, section 3",
    idea=Words(
        "Nothing in the model marks a position. Without a mask, permuting the tokens permutes the output in the same way. "
        "A causal mask still carries order: each token sees a different number of tokens, and deeper layers can use that.",
        "模型中没有任何位置信号。不加掩码时，打乱词的顺序，输出也按同样的顺序打乱。"
        "因果掩码仍带有顺序信息：每个词能看到的词数不同，更深的层可以利用这一点。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}}",
    domains=("text", "audio", "graph"),
    breaks=Words(
        "Without a causal mask the order of the tokens cannot be told. With one, it is learned slowly, and "
        "attention spreads out over texts much longer than those of training.",
        "没有因果掩码时无法区分词的顺序。有因果掩码时学得慢；文本比训练时长很多时，注意力会分散。",
    ),
)
