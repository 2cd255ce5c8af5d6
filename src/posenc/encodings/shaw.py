"""Learned relative vectors for keys and values, clipped at a largest distance, or none beyond it.

    logits += q_i·a^K[c] / √d_head,   out_i += Σ_j probs_ij · a^V[c],   c = clip(j - i, -k, k)

Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 3 and 4; shared by all heads.
Legend: b batch, h query heads, i query, j key, d d_head, r = k + 1 + right relative vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc import checks
from posenc.bilingual import Words
from posenc.checked import checked
from posenc.encoding import BiasFn, PositionalEncoding, Site, check_width
from posenc.entry import Entry
from posenc.positions import Positions
from posenc.relative_vectors import Relative, RelativeVectors

if TYPE_CHECKING:
    from posenc.shapes import Bool, Int

Outside = Literal["clip", "zero"]


class Shaw(PositionalEncoding):
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
        self.sites = Site.BIAS | Site.VALUE if values else Site.BIAS
        rows = max_distance + 1 + self.right
        self.keys = nn.Parameter(torch.empty(rows, d_head))
        nn.init.xavier_uniform_(self.keys)
        self.values = nn.Parameter(torch.empty(rows, d_head)) if values else None
        if self.values is not None:
            nn.init.xavier_uniform_(self.values)

    @checked
    def row(self, query: Int[Tensor, "*#s"], key: Int[Tensor, "*#s"]) -> Int[Tensor, "*s"]:
        """Which vector: 0 is k or more before the query, k is the query itself, the last is `right` or more after."""
        return (key - query).clamp(-self.max_distance, self.right) + self.max_distance

    @checked
    def reaches(self, query: Int[Tensor, "*#s"], key: Int[Tensor, "*#s"]) -> Bool[Tensor, "*s"]:
        """Whether the pair has a vector at all."""
        return (key - query >= -self.max_distance) & (key - query <= self.right)

    def relative_vectors(self) -> RelativeVectors:
        return self._vectors

    def _vectors(self, q: Tensor, at_q: Positions, at_k: Positions, first: Tensor, n: int) -> Relative:
        """The tables as they are: their first and last rows count for all that is further away, or a row of zeros does."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        beyond = 1 if self.outside == "zero" else 0
        keys, values = (
            table if table is None else F.pad(table, (0, 0, beyond, beyond))[None, None]
            for table in (self.keys, self.values)
        )
        assert keys is not None
        return Relative(q, q, keys, values, torch.full_like(first[:1], -self.max_distance - beyond))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        self.check_coords(at_q, integers=True)
        self.check_coords(at_k, integers=True)
        scores = q @ self.keys.to(q.dtype).T * self.softmax_scale(self.d_head)  # [b, h, i, r]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            score = scores[b, h, i, self.row(query[b, i], key[b, j])]
            return score if self.outside == "clip" else score.where(self.reaches(query[b, i], key[b, j]), 0)

        return of_pair

    def value(self, probs: Tensor, at_q: Positions, at_k: Positions) -> Tensor | None:
        if self.values is None:
            return None
        self.check_coords(at_q, integers=True)
        self.check_coords(at_k, integers=True)
        query, key = at_q.coords[:, None, :, None], at_k.coords[:, None, None, :]
        row = self.row(query, key).expand_as(probs)
        if self.outside == "zero":
            probs = probs.where(self.reaches(query, key), 0)
        by_row = probs.new_zeros(*probs.shape[:3], len(self.values)).scatter_add(-1, row, probs)  # [b, h, i, r]
        return by_row @ self.values.to(probs.dtype)


ENTRY = Entry(
    name="shaw",
    class_name="Shaw",
    title=Words("Shaw", "相对位置编码"),
    kind="relative",
    published="2018-03",
    needs=("parameters",),
    per_layer=True,  # section 4.1
    small={"max_distance": 2},
    formula="q·(k + a[j-i]), v + a'[j-i]",
    also_called=("relative", "relative_key", "relative_position", "RelativePositionalEncoding", "相对位置编码"),
    used_by=(
        "Music Transformer",
        Words("Wav2Vec2-BERT and SeamlessM4T v2 (keys only)", "Wav2Vec2-BERT 和 SeamlessM4T v2（只用于键）"),
        "VITS",
    ),
    source="Shaw et al. 2018, arXiv 1803.02155, section 3",
    idea=Words(
        "Each relative distance up to a limit has a learned vector added to the key, and another added to the "
        "value. Larger distances use the vector of the limit, so the encoding is defined for any length. The "
        "vectors are shared by all heads.",
        "上限以内的每个相对距离有一个学到的向量加到键上，另有一个加到值上。更大的距离使用上限处的向量，因此对任意长"
        "度都有定义。各头共用这些向量。",
    ),
    latex=r"\frac{q_i \cdot (k_j + a^K_c)}{\sqrt{d}}, \quad o_i = \sum_j \alpha_{ij} (v_j + a^V_c), \quad c = "
    r"\mathrm{clip}(j - i, -k, k)",
    breaks=Words(
        "All distances beyond the limit look the same. The vectors on values rule out fused attention kernels.",
        "超过上限的距离无法区分。值上的向量使融合的注意力内核无法使用。",
    ),
    code="tensorflow/tensor2tensor",
    options={
        "max_distance": "k：更远按此距离计（论文的基础模型为 16）",
        "right": "查询之后的键的最大距离；默认为 k（Wav2Vec2-BERT：之前 64，之后 8）",
        "values": "值是否也有向量；没有时可用融合的后端",
        "outside": '"clip"：更远按上限计；"zero"：更远没有向量（VITS）',
    },
)
