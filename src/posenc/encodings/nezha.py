"""Shaw's relative vectors without parameters: the vector of a distance is its sinusoid, on keys and on values.

    logits += q_i·a[c] / √d_head,   out_i += Σ_j probs_ij · a[c],   c = clip(j - i, -k, k)
    a[c]_2n = sin((c + o)·ω_n),  a[c]_(2n+1) = cos((c + o)·ω_n),   ω_n = base^(-2n/d_head),  o = k, or 0 in the paper

Wei et al. 2019, "NEZHA: Neural Contextualized Representation for Chinese Language Understanding", section 2.2, equations 6
and 7, which do not clip and have o = 0: there k is the length of the text. The authors' code clips at k = 64 and numbers
the rows of its table from 0, so that its trained models have a[0] = sinusoid of 64. Shared by all heads.
Legend: d d_head, r = 2k + 1 vectors.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from posenc.encodings.bases.clipped_vectors import ClippedVectors
from posenc.kernels.eager import constant
from posenc.support import checks
from posenc.support.checked import checked

Form = Literal["code", "paper"]


class NEZHA(ClippedVectors):
    """Sinusoids of the clipped distance on keys and values. No parameters.

    d_head        channels of a head, even
    max_distance  k: further away counts as this far; left out: 64, as in the authors' models. The form of the paper has no
                  limit and needs the largest distance in use, the length of the text less 1
    base          of the frequencies
    form          "code": the sinusoid of the distance plus k, for the authors' models; "paper": of the distance

    Raises ValueError for an odd d_head, for another form and for form="paper" without max_distance, TypeError for real
    positions. Time and memory are Shaw's.
    """

    @checked
    def __init__(self, d_head: int, *, max_distance: int | None = None, base: float = 10000.0, form: Form = "code") -> None:
        checks.even(d_head=d_head)
        checks.one_of(get_args(Form), form=form)
        if max_distance is None:
            if form == "paper":
                raise ValueError(
                    "max_distance: left out; the paper does not clip: with form='paper', give the length of the text less 1"
                )
            max_distance = 64
        checks.whole(0, max_distance=max_distance)
        checks.positive(base=base)
        super().__init__(d_head=d_head, max_distance=max_distance, base=base, form=form)
        self.d_head, self.max_distance, self.right, self.form = d_head, max_distance, max_distance, form
        self.frequencies = tuple(base ** (-2 * n / d_head) for n in range(d_head // 2))

    def _tables(self, q: Tensor) -> tuple[Tensor, Tensor]:
        first = 0 if self.form == "code" else -self.max_distance
        distance = torch.arange(first, first + 2 * self.max_distance + 1, dtype=torch.float64, device=q.device)
        angle = distance[:, None] * constant(self.frequencies, torch.float64, q.device)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(q.dtype)  # [r, d]
        return table, table
