"""RWSE: a node of a graph by how likely a random walk of 1, 2, … k steps comes back to it.

    node n at ((A D⁻¹)_nn, ((A D⁻¹)²)_nn, …, ((A D⁻¹)^k)_nn)

Dwivedi et al. 2021, "Graph Neural Networks with Learnable Structural and Positional Representations", there named
RWPE. posenc.create("coordinate_projection", d_model=…, axes=k) adds a linear map of them to the embedding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encodings.positions.lappe import edges
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked

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
