"""A node of a directed graph at its entries in the magnetic Laplacian's slowest eigenvectors, which are complex.

    L = I - D^(-½) (S ∘ e^(iΘ)) D^(-½),   Θ = 2πq'(A - Aᵀ),   q' = q / min(one-way edges, n)
    L u_m = λ_m u_m,  λ_0 ≤ λ_1 ≤ …,      node n at (Re u_0n, …, Re u_kn, Im u_0n, …, Im u_kn)

S is A + Aᵀ, half of it where an edge goes both ways, and D its degrees. Along an edge the phase turns, against it it turns
back: with q = ¼ by at most a quarter of a turn over all of a path. Geisler et al. 2023, "Transformers Meet Directed
Graphs", section 4, and the authors' code. Each vector's phase is a free choice: as in their code all vectors are made real
at one node, here the one that lies farthest ahead in the first vector, seen from the vector's mean.
posenc.create("coordinate_projection", d_model=…, axes=2·k) adds them to the embedding.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.encodings.positions.lappe import directed
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Num

NOISE = 1e-9  # of imaginary parts that are 0: the first node is the root then


@checked
def magnetic_laplacian(
    adjacency: Num[Tensor, "b n n"], *, vectors: int = 4, q: float = 0.25, relative: bool = True
) -> Positions:
    """Coordinates [b, n, 2·vectors] of the nodes, in fp64; zeros where a graph has too few eigenvectors.

    adjacency  weights of the edges from the row's node to the column's, 0 where there is none; 1 in the authors' code
    vectors    k, eigenvectors taken, from the first on
    q          the share of a turn for one edge, or with `relative` for all of them
    relative   q is divided by the number of one-way edges, or of nodes where they are fewer

    Time O(n³). Raises ValueError for a graph without nodes, negative weights, and q below 0 or above 1.
    """
    checks.whole(vectors=vectors)
    if not 0 <= q <= 1:
        raise ValueError(f"q: expected a share of a turn from 0 to 1, got {q}")
    weights = directed(adjacency)
    n, back = weights.shape[-1], weights.transpose(-1, -2)
    both = (weights != 0) & (back != 0)
    symmetric = (weights + back) * torch.where(both, 0.5, 1.0)
    degree = symmetric.sum(dim=-1)
    scale = degree.rsqrt().masked_fill(degree == 0, 0.0)
    one_way = (weights != back).double().sum(dim=(-2, -1), keepdim=True) / 2
    turn = q / one_way.clamp(1, n) if relative else q
    phase = 2 * math.pi * turn * (weights - back)
    coupling = torch.polar(scale[:, :, None] * symmetric * scale[:, None, :], phase)
    laplacian = torch.eye(n, dtype=coupling.dtype, device=coupling.device) - coupling
    found = _with_one_root(torch.linalg.eigh(laplacian).eigenvectors)[..., :vectors]
    found = torch.nn.functional.pad(found, (0, vectors - found.shape[-1]))
    return Positions.at(torch.cat([found.real, found.imag], dim=-1))


def _with_one_root(vectors: Tensor) -> Tensor:
    """The complex vectors [b, n, k] with phases at which all are real, and not negative, at one node."""
    first = vectors[..., 0]
    ahead = (first * first.sum(dim=1, keepdim=True).conj()).imag
    root = ahead.masked_fill(ahead.abs() < NOISE, 0.0).argmax(dim=1)
    at_root = vectors.gather(1, root[:, None, None].expand(-1, 1, vectors.shape[-1]))
    return vectors * torch.polar(torch.ones_like(at_root.real), -at_root.angle())
