"""RWSE: a node of a graph by how likely a random walk of 1, 2, … k steps comes back to it.

    node n at ((A D⁻¹)_nn, ((A D⁻¹)²)_nn, …, ((A D⁻¹)^k)_nn)

Dwivedi et al. 2021, "Graph Neural Networks with Learnable Structural and Positional Representations", there named
RWPE. posenc.create("coordinate_projection", d_model=…, axes=k) adds a linear map of them to the embedding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.catalogue.entry import Entry
from posenc.encodings.positions.lappe import edges
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Num


@checked
def rwse(adjacency: Num[Tensor, "b n n"], *, steps: int = 8) -> Positions:
    """Coordinates [b, n, steps] of the nodes, in fp64. A node without edges has zeros.

    adjacency  weights of the edges of undirected graphs, 0 where there is none
    steps      k, the longest walk

    Time O(k·n³). Raises ValueError for a matrix that is not symmetric, or has negative weights.
    """
    checks.whole(steps=steps)
    weights = edges(adjacency)
    degree = weights.sum(dim=-1)
    walk = weights * (1 / degree).masked_fill(degree == 0, 0.0)[:, None, :]
    power, returns = torch.eye(walk.shape[-1], dtype=walk.dtype, device=walk.device).expand_as(walk), []
    for _ in range(steps):
        power = power @ walk
        returns.append(power.diagonal(dim1=-2, dim2=-1))
    return Positions.at(torch.stack(returns, dim=-1))


ENTRY = Entry(
    name="rwse",
    class_name="Positions",
    builder="rwse",
    title=Words("RWSE", "随机游走结构位置"),
    kind="positions",
    published="2021-10",
    axes=8,
    formula="diagonals of A D⁻¹, (A D⁻¹)², …, (A D⁻¹)^k",
    also_called=("rwpe", "random_walk_pe", "random_walk_structural_encoding", "AddRandomWalkPE"),
    used_by=("LSPE", "GraphGPS"),
    source="Dwivedi et al. 2021, arXiv 2110.07875",
    idea=Words(
        "Each node gets the probabilities with which a random walk is back after 1, 2, 3 … steps. They tell its "
        "surroundings apart, such as rings of different sizes. Unlike eigenvectors they have no free sign.",
        "每个节点得到随机游走 1、2、3……步后回到原处的概率。这些数能区分它的周围结构，例如不同大小的环；"
        "与特征向量不同，没有符号的任意性。",
    ),
    arguments={"adjacency": "torch.ones(1, length, length).tril(1).triu(-1) - torch.eye(length)"},
    latex=r"p_n = \big((AD^{-1})_{nn},\; (AD^{-1})^2_{nn},\; \dots,\; (AD^{-1})^k_{nn}\big)",
    domains=("graph",),
    breaks=Words(
        "Nodes with the same surroundings have the same numbers, wherever they are: it tells structure and not "
        "place. Dense powers take time O(k·n³).",
        "周围结构相同的节点，无论在哪里，数值都相同：它表示结构而不是位置。稠密矩阵的幂需要 O(k·n³) 时间。",
    ),
    differs=Words(
        "Only the coordinates are here; coordinate_projection maps them into the embedding.",
        "这里只给出坐标；coordinate_projection 把它们映射到词向量。",
    ),
    code="vijaydwivedi75/gnn-lspe",
    options={
        "adjacency": "无向图的边权，没有边处为 0",
        "steps": "k，最长的游走步数",
    },
)
