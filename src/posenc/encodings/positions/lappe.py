"""LapPE: a node of a graph at its entries in the Laplacian's slowest eigenvectors.

    L = I - D^(-½) A D^(-½),   L u_m = λ_m u_m,  λ_0 ≤ λ_1 ≤ …,   node n at (u_1n, …, u_kn)

Dwivedi et al. 2020, "Benchmarking Graph Neural Networks" (arXiv 2003.00982), and the authors' code, where a node without
edges has L = 1 too. u_0, which says nothing but the degree, is left out. The sign of an eigenvector is a free choice: in
training it is drawn anew each time (`random_signs`); otherwise its largest entry is positive, the first of them where a
symmetric graph has several. Eigenvectors that share an eigenvalue are any basis of their space.
posenc.create("coordinate_projection", d_model=…, axes=k) adds them to the embedding, as the paper does;
posenc.create("wire", …) turns queries and keys by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Num


@checked
def lappe(
    adjacency: Num[Tensor, "b n n"],
    *,
    vectors: int = 8,
    normalized: bool = True,
    random_signs: bool = False,
    generator: torch.Generator | None = None,
) -> Positions:
    """Coordinates [b, n, vectors] of the nodes, in fp64; zeros where a graph has too few eigenvectors.

    adjacency     weights of the edges of undirected graphs, 0 where there is none
    vectors       k, eigenvectors taken
    normalized    False: of L = D - A instead
    random_signs  every eigenvector of every graph times 1 or -1, drawn
    generator     the source of the random signs; torch's own if left out

    Time O(n³). Raises ValueError for a matrix that is not symmetric, or has negative weights.
    """
    checks.whole(vectors=vectors)
    weights = edges(adjacency)
    degree = weights.sum(dim=-1)
    laplacian = torch.diag_embed(degree) - weights
    if normalized:
        scale = degree.rsqrt().masked_fill(degree == 0, 0.0)
        identity = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        laplacian = identity - scale[:, :, None] * weights * scale[:, None, :]
    eigenvectors = torch.linalg.eigh(laplacian).eigenvectors[..., 1 : vectors + 1]
    largest = eigenvectors.gather(1, eigenvectors.abs().argmax(dim=1, keepdim=True))
    sign = torch.where(largest < 0, -1.0, 1.0).double()
    if random_signs:
        drawn = torch.randint(2, sign.shape, generator=generator).to(sign.device)
        sign = 1.0 - 2.0 * drawn.double()
    return Positions.at(torch.nn.functional.pad(eigenvectors * sign, (0, vectors - eigenvectors.shape[-1])))


def edges(adjacency: Tensor) -> Tensor:
    """Weights in fp64. Raises ValueError for a graph without nodes, one with directions, and weights that cannot be."""
    weights = directed(adjacency)
    if not torch.equal(weights, weights.transpose(-1, -2)):
        raise ValueError("adjacency: expected a symmetric matrix, that of an undirected graph; a + a.mT makes one")
    return weights


def directed(adjacency: Tensor) -> Tensor:
    """Weights in fp64 of a graph that may have directions."""
    with_values(adjacency=adjacency)
    weights = adjacency.double()
    if not bool(weights.isfinite().all()) or bool((weights < 0).any()) or bool((weights > 1e100).any()):
        raise ValueError("adjacency: expected weights from 0 to 1e100, got a negative, infinite or larger one")
    return weights
