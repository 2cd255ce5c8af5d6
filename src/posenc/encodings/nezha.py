"""Shaw's relative vectors without parameters: the vector of a distance is its sinusoid, on keys and on values.

    logits += q_i·a[c] / √d_head,   out_i += Σ_j probs_ij · a[c],   c = clip(j - i, -k, k)
    a[c]_2n = sin(c·ω_n),  a[c]_(2n+1) = cos(c·ω_n),   ω_n = base^(-2n/d_head)

Wei et al. 2019, "NEZHA: Neural Contextualized Representation for Chinese Language Understanding", section 2.2, equations 6
and 7, which do not clip: there k is the length of the text. The authors' code clips at k = 64 and takes the sinusoid of
c + k, so that its trained models have a[0] = sinusoid of 64. Shared by all heads.
Legend: d d_head, r = 2k + 1 vectors.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.clipped_vectors import ClippedVectors
from posenc.kernels.fast_path import constant
from posenc.support import checks
from posenc.support.checked import checked

Form = Literal["paper", "code"]


class NEZHA(ClippedVectors):
    """Sinusoids of the clipped distance on keys and values. No parameters.

    d_head        channels of a head, even
    max_distance  k: further away counts as this far; 64 in the authors' models
    base          of the frequencies
    form          "paper": the sinusoid of the distance; "code": of the distance plus k, for the authors' models

    Raises ValueError for an odd d_head and another form, TypeError for real positions. Time and memory are Shaw's.
    """

    @checked
    def __init__(self, d_head: int, *, max_distance: int = 64, base: float = 10000.0, form: Form = "paper") -> None:
        checks.even(d_head=d_head)
        checks.whole(0, max_distance=max_distance)
        checks.positive(base=base)
        checks.one_of(get_args(Form), form=form)
        super().__init__(d_head=d_head, max_distance=max_distance, base=base, form=form)
        self.d_head, self.max_distance, self.right, self.form = d_head, max_distance, max_distance, form
        self.frequencies = tuple(base ** (-2 * n / d_head) for n in range(d_head // 2))

    def _tables(self, q: Tensor) -> tuple[Tensor, Tensor]:
        first = 0 if self.form == "code" else -self.max_distance
        distance = torch.arange(first, first + 2 * self.max_distance + 1, dtype=torch.float64, device=q.device)
        angle = distance[:, None] * constant(self.frequencies, torch.float64, q.device)
        table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(q.dtype)  # [r, d]
        return table, table


ENTRY = Entry(
    name="nezha",
    class_name="NEZHA",
    title="NEZHA",
    kind="relative",
    published="2019-08",
    small={"max_distance": 2},
    formula="q·(k + a[j-i]), v + a[j-i], a sinusoids",
    also_called=(
        "functional_relative_position",
        "functional_relative_positional_encoding",
        "NezhaRelativePositionsEncoding",
    ),
    used_by=("NEZHA",),
)
