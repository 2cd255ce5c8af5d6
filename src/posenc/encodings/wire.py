"""WIRE: RoPE on a graph. Angles come from a node's coordinates in the graph's spectrum.

    angle of pair i at node n = Σ_m ω_mi·u_mn,   u the slowest eigenvectors of the Laplacian, ω learned

Reid et al. 2025, "Wavelet-Induced Rotary Encodings: RoPE Meets Graphs", section 3. The coordinates are those of
posenc.positions_by("lappe", …); the paper takes the Laplacian D - A, normalized=False. The sum is RoPE-Mixed's
(rope_mixed.py) with as many axes; the paper derives RoPE on grids from it. There is no code by the authors: the fresh ω,
N(0, scale²), is posenc's choice.
"""

from __future__ import annotations

import torch

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_rope import MixedRoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


class WIRE(MixedRoPE):
    """`MixedRoPE` over spectral coordinates.

    d_head   channels of a head, a multiple of 4
    n_heads  heads, of queries and of keys
    axes     eigenvectors that are read
    scale    of the fresh frequencies
    layout   which channels make a pair

    Parameter: frequencies ω, [axes, n_heads, d_head/2].
    Time O(t·heads·d_head·axes) for the angles. Raises ValueError for sizes that do not fit.
    """

    @checked
    def __init__(
        self, d_head: int, n_heads: int, *, axes: int = 8, scale: float = 1.0, layout: Layout = "interleaved"
    ) -> None:
        checks.positive(scale=scale)
        super().__init__(d_head, n_heads, axes=axes, layout=layout)
        self.configure(d_head=d_head, n_heads=n_heads, axes=axes, scale=scale, layout=layout)
        torch.nn.init.normal_(self.frequencies, std=scale)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> WIRE:
        part = WIRE(**{**self.configuration, "n_heads": stop - start}).to(self.frequencies)
        part.frequencies.copy_(self.frequencies[:, start:stop])
        return part


ENTRY = Entry(
    name="wire",
    class_name="WIRE",
    title=Words("WIRE", "图上的旋转位置编码"),
    kind="rotated",
    published="2025-09",
    needs=("parameters",),
    axes=8,
    positions=(
        'posenc.positions_by("lappe", adjacency=torch.ones(1, length, length).tril(1).triu(-1) - torch.eye(length))'
    ),
    coordinates=Words(
        "A node's entries in the eigenvectors of the Laplacian with the smallest eigenvalues (paper, section "
        "3; the authors give no code).",
        "节点在拉普拉斯矩阵最小特征值对应的各特征向量中的分量（论文第 3 节；作者没有公开代码）。",
    ),
    both_ways=True,
    per_layer=True,
    formula="R(Σ ω u)q · R(Σ ω u')k, u of the Laplacian",
    also_called=("wavelet_induced_rotary_encodings", "wave_induced_rotary_encodings", "graph_rope"),
    used_by=(Words("research: graphs and point clouds by its authors", "研究：作者的图与点云实验"), "XLRON"),
    source="Reid et al. 2025, arXiv 2509.22259, section 3",
    idea=Words(
        "RoPE needs coordinates, which the nodes of a graph do not have. The slowest eigenvectors of the graph's "
        "Laplacian "
        "serve as coordinates: nodes with similar entries are turned alike, so that scores depend on how far apart two "
        "nodes are in the graph. How far each eigenvector turns each pair is learned.",
        "RoPE 需要坐标，而图的节点没有坐标。这里用图拉普拉斯矩阵最慢的特征向量作坐标："
        "取值相近的节点旋转相近，因此分数反映两个节点在图中的远近。每个特征向量使每个通道对转多少由训练决定。",
    ),
    latex=(
        r"R\Big(\sum_m \omega_m u_{mi}\Big) q_i \cdot R\Big(\sum_m \omega_m u_{mj}\Big) k_j, \quad L u_m = "
        r"\lambda_m u_m"
    ),
    domains=("graph",),
    breaks=Words(
        "Eigenvectors have free signs, and no meaning across graphs: a model must see many choices in training. "
        "Nodes of one eigenspace can be told apart in several ways.",
        "特征向量的符号任意，且不同图之间没有对应关系：训练时须见到多种取法。同一特征空间中的节点可有多种区分方式。",
    ),
    differs=Words(
        "There is no code by the authors. Fresh frequencies, N(0, scale²), are posenc's choice.",
        "作者没有公开代码。初始频率 N(0, scale²) 是 posenc 的选择。",
    ),
    options={
        "n_heads": "头数，查询与键相同",
        "axes": "读取的特征向量个数",
        "scale": "初始频率的大小",
    },
)
