"""Learned relative vectors for keys and values, clipped at a largest distance, or none beyond it.

    logits += q_i·a^K[c] / √d_head,   out_i += Σ_j probs_ij · a^V[c],   c = clip(j - i, -k, k)

Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 3 and 4; shared by all heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encoding import Seam
from posenc.encodings.bases.clipped_vectors import ClippedVectors, Outside
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


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
        self.seams = Seam.BIAS | Seam.FINISH if values else Seam.BIAS
        rows = max_distance + 1 + self.right
        self.keys = nn.Parameter(torch.empty(rows, d_head))
        nn.init.xavier_uniform_(self.keys)
        self.values = nn.Parameter(torch.empty(rows, d_head)) if values else None
        if self.values is not None:
            nn.init.xavier_uniform_(self.values)

    def _tables(self, q: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.keys, self.values


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
