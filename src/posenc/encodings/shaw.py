"""Learned relative vectors for keys and values, clipped at a largest distance, or none beyond it.

    logits += q_i·a^K[c] / √d_head,   out_i += Σ_j probs_ij · a^V[c],   c = clip(j - i, -k, k)

Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 3 and 4; shared by all heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posenc.encodings.bases.clipped_vectors import ClippedVectors, Outside
from posenc.support import checks
from posenc.support.checked import checked


class Shaw(ClippedVectors):
    """Relative vectors on keys and, unless values=False, on values.

    d_head        channels of a head
    max_distance  k: further away counts as this far (16 in the paper's base model)
    values        whether values get vectors too; without them the fused backends can serve it
    right         the largest distance of keys after the query; k unless said (Wav2Vec2-BERT: 64 before, 8 after)
    outside       "clip": further away counts as the limit. "zero": there is no vector further away (VITS)

    Families that number rows by i - j (SpeechT5, Granite Speech) give the same with their rows in reverse.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        max_distance: int = 16,
        values: bool = True,
        right: int | None = None,
        outside: Outside = "clip",
    ) -> None:
        checks.whole(0, max_distance=max_distance)
        super().__init__(d_head=d_head, max_distance=max_distance, values=values, right=right, outside=outside)
        self.d_head, self.max_distance, self.outside = d_head, max_distance, outside
        self.right = max_distance if right is None else right
        self.seams = frozenset({"bias", "finish"}) if values else frozenset({"bias"})
        rows = max_distance + 1 + self.right
        self.keys = nn.Parameter(torch.empty(rows, d_head))
        nn.init.xavier_uniform_(self.keys)
        self.values = nn.Parameter(torch.empty(rows, d_head)) if values else None
        if self.values is not None:
            nn.init.xavier_uniform_(self.values)

    def _tables(self, q: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.keys, self.values
