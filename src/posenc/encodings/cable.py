"""Biases that every token learns from its content and that add up along the sequence.

    logits += Σ_{t = j+1 … i} -softplus(w_h·x_t + b_h)

Veisi et al. 2025, "Context-aware Biases for Length Extrapolation" (CABLE), section 3. This is FoX with the sign of the
gate's input turned, since -softplus(a) = ln σ(-a). The authors' code leaves q·k undivided: CABLE(…, scale=1.0).
Legend: b batch, t tokens, h query heads, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.encodings.fox import FoX
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class CABLE(FoX):
    """The running sum of -softplus(w·x + b), of the query minus of the key. Parameters, `read_hidden` and costs are FoX's.

    d_model  channels of the hidden states that go into the projections
    n_heads  query heads
    scale    what q·k is multiplied with: None is 1/√d_head; the authors' code has 1.0
    """

    @checked
    def __init__(self, d_model: int, n_heads: int, *, scale: float | None = None) -> None:
        super().__init__(d_model, n_heads)
        if scale is not None:
            checks.positive(scale=scale)
        self.configure(d_model=d_model, n_heads=n_heads, scale=scale)
        self.scale = scale

    def log_gates(self, logits: Float[Tensor, "b t h"]) -> Float[Tensor, "b t h"]:
        return -F.softplus(logits)

    def softmax_scale(self, d_head: int) -> float:
        return super().softmax_scale(d_head) if self.scale is None else self.scale


ENTRY = Entry(
    name="cable",
    class_name="CABLE",
    title=Words("CABLE", "上下文感知偏置"),
    kind="contextual",
    published="2025-03",
    needs=("parameters", "hidden_states", "causal"),
    per_layer=True,
    formula="q·k - Σ softplus(w·xₜ + b)",
    also_called=("context_aware_biases", "context_aware_bias_for_length_extrapolation"),
    used_by=(Words("research: length extrapolation by its authors", "研究：作者用于长度外推"),),
    source="Veisi et al. 2025, arXiv 2503.08067, section 3",
    code="axiomlab/Cable",
    idea=Words(
        "Every token computes a positive number for each head from its content. "
        "The score of a pair is lowered by the sum of the numbers of the tokens in between. "
        "It is ALiBi whose slope changes with the content, and the same as a forget gate.",
        "每个词根据内容为每个头算一个正数。一对词的分数减去二者之间各词的数之和。"
        "它相当于斜率随内容变化的 ALiBi，与遗忘门等价。",
    ),
    latex=r"\frac{q_i \cdot k_j}{\sqrt{d}} - \sum_{t=j+1}^{i} \mathrm{softplus}(w_h \cdot x_t + b_h)",
    breaks=Words(
        "Only causal attention, and the same limits as FoX: what has decayed is gone.",
        "只适用于因果注意力，限制与 FoX 相同：衰减掉的内容无法取回。",
    ),
    differs=Words(
        "Scores are divided by √d; the authors' code leaves them (`scale=1.0`).",
        "分数除以 √d；作者代码不除（`scale=1.0`）。",
    ),
    options={
        "scale": "q·k 乘以的数：None 为 1/√d_head；作者代码为 1.0",
    },
)
