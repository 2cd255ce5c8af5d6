"""ALiBi as Falcon's code computes it: of the key alone, rounded to bfloat16, and divided by √d_head.

    logits = (q·k + bf16(bf16(m_h)·bf16(j)))/√d_head

transformers, models/falcon; the models were trained and are run so. Without rounding it is `alibi`: Press et al. 2021,
section 3.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.of_families.falcon_alibi import FalconALiBi
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def falcon_alibi(n_heads: int) -> FalconALiBi:
    """`FalconALiBi`.

    n_heads  query heads of the whole model; a tensor-parallel rank takes heads(start, stop) of it
    """
    return FalconALiBi(n_heads)


ENTRY = Entry(
    name="falcon_alibi",
    class_name="FalconALiBi",
    builder="falcon_alibi",
    title=Words("ALiBi of Falcon", "Falcon 的 ALiBi"),
    kind="biased",
    published="2023-06",
    needs=("causal",),
    formula="(q·k + bf16(m·j))/√d",
    also_called=(
        "build_alibi_tensor",
        "falcon",
    ),
    used_by=("Falcon-RW",),
    source="transformers, models/falcon; Press et al. 2021, arXiv 2108.12409, section 3",
    idea=Words(
        "ALiBi with a bias of the key's position instead of the distance, which is the same for a causal softmax "
        "but for rounding. Falcon rounds it to bfloat16, so that neighbouring keys share a bias beyond position "
        "256, and divides it by √d_head. Models that were trained with this rounding need it.",
        "偏置取键的位置而不是距离的 ALiBi；在因果 softmax 下，除舍入外二者相同。Falcon 把它舍入到 "
        "bfloat16，因此位置 256 之后相邻的键会有相同的偏置，并且还除以 √d_head。用这种舍入训练的模型需要它。",
    ),
    latex=r"\frac{q_i \cdot k_j + \mathrm{bf16}(\mathrm{bf16}(m_h) \cdot \mathrm{bf16}(j))}{\sqrt{d}}",
    breaks=Words(
        "Beyond position 256 bfloat16 cannot hold every whole number, so that neighbouring keys share a bias. Only "
        "causal attention.",
        "位置超过 256 后，bfloat16 不能表示每个整数，相邻的键共用一个偏置。只适用于因果注意力。",
    ),
    differs=Words(
        "It is ALiBi with the rounding and the division of Falcon's code.",
        "即 ALiBi，加上 Falcon 代码中的舍入与除法。",
    ),
    code="huggingface/transformers",
    options={
        "n_heads": "整个模型的查询头数；张量并行的各份取 heads(start, stop)",
    },
)
