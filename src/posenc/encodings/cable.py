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

from posenc.encoding import usual_scale
from posenc.encodings.fox import FoX
from posenc.support import checks
from posenc.support.checked import checked

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
            checks.moderate(scale=scale)
        self._configure(d_model=d_model, n_heads=n_heads, scale=scale)
        self.scale = scale

    def log_gates(self, logits: Float[Tensor, "b t h"]) -> Float[Tensor, "b t h"]:
        return -F.softplus(logits)

    def softmax_scale(self, d_head: int) -> float:
        return usual_scale(d_head) if self.scale is None else self.scale
