"""DroPE: the rotation of a trained model is dropped, and a short training afterwards makes up for it.

    train with R(p)q · R(p')k,   then go on with q·k

Gelberg et al. 2025, "Extending the Context of Pretrained LLMs by Dropping Their Positional Embeddings", section 4.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.nope import NoPE
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def drope() -> NoPE:
    """What takes the place of a trained model's RoPE, in every layer: `NoPE`.

    The weights stay; train them for some per cent of the steps more, at the trained length.
    """
    return NoPE()


ENTRY = Entry(
    name="drope",
    class_name="NoPE",
    builder="drope",
    title=Words("DroPE", "丢弃旋转"),
    kind="preset",
    published="2025-12",
    formula="R(p)q · R(p')k, then q·k",
    also_called=(
        "drop_positional_embeddings",
        "dropped_rope",
    ),
    used_by=(Words("research: SmolLM and Llama 2 by its authors", "研究：作者的 SmolLM 与 Llama 2 实验"),),
    example="""\
attention = posenc.Attention(d_model, n_heads, posenc.create("rope", d_head=64))  # trained so
attention.encoding = encoding  # and trained on for a while without
words = torch.randn(batch, length, d_model)
assert attention(words, posenc.Positions.arange(batch, length)).shape == words.shape
""",
    source="Gelberg et al. 2025, arXiv 2512.12167, section 5",
    code="SakanaAI/DroPE",
    idea=Words(
        "Positions help a model to learn and hinder it from reading more than it was trained on. So RoPE is used "
        "for most of the training and dropped near its end: what is left is NoPE, which reads much longer texts. "
        "The paper trains afterwards on 0.5 % (Llama 2) to 20 % (SmolLM) of the tokens.",
        "位置有助于模型学习，却妨碍它读比训练时更长的文本。因此训练的大部分使用 RoPE，临近结束时丢弃：剩下的就是 "
        "NoPE，能读长得多的文本。论文中后续训练用了 0.5%（Llama 2）到 20%（SmolLM）的词。",
    ),
    latex=r"(R(i) q_i) \cdot (R(j) k_j) \;\to\; q_i \cdot k_j",
    domains=("text", "audio", "graph"),
    starts=("trained",),
    breaks=Words(
        "Without the training afterwards the model is broken. What remains is NoPE, with its limits.",
        "不做后续训练，模型就不可用。剩下的是 NoPE，也有 NoPE 的局限。",
    ),
)
