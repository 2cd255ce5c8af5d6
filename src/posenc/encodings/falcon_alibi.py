"""ALiBi as Falcon's code computes it: of the key alone, rounded to bfloat16, and divided by √d_head.

    logits = (q·k + bf16(bf16(m_h)·bf16(j)))/√d_head

transformers, models/falcon; the models were trained and are run so. Without rounding it is `alibi`: Press et al. 2021,
section 3.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.of_families.falcon_alibi import FalconALiBi
from posenc.support.checked import checked


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
    title="ALiBi of Falcon",
    kind="biased",
    published="2023-06",
    needs=("causal",),
    formula="(q·k + bf16(m·j))/√d",
    also_called=("build_alibi_tensor", "falcon_rw"),
    used_by=("Falcon-RW",),
)
