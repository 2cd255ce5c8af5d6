"""Graphormer's spatial encoding: a learned number for every head and distance of two nodes, in edges.

    logits += b[h, φ(i, j)],   φ edges of the shortest path, with numbers of their own for no path and for the graph's token

Ying et al. 2021, "Do Transformers Really Perform Bad for Graph Representation?", sections 3.1.2 and 3.2.
The distances are given: at = encoding.with_pairs(at, distances); coordinates alone say nothing of edges. Edges along the
path (section 3.1.3) are a `bases.pairs.PairBias` beside it, in a Stack.
Legend: b batch, t tokens, n nodes, h query heads, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn
from posenc.encodings.bases.pairs import OfPairs
from posenc.encodings.positions.lappe import edges
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Int, Num

NO_PATH, GRAPH_TOKEN = -1, -2


class Graphormer(OfPairs):
    """b[distance], learned.

    n_heads       query heads
    max_distance  the largest distance with a number of its own, which longer ones share

    Distances are whole numbers: edges of the shortest path (`shortest_paths`), -1 without a path, -2 for a pair with the
    token of the whole graph. Parameter: table [max_distance + 3, n_heads], distances from 0, no path, the graph's token.
    Raises ValueError for distances below -2 (a device assert off the CPU) and for positions without distances, TypeError
    for distances that are not whole.
    """

    @checked
    def __init__(self, n_heads: int, *, max_distance: int = 20) -> None:
        checks.whole(max_distance=max_distance)
        super().__init__(n_heads=n_heads, max_distance=max_distance)
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.empty(max_distance + 3, n_heads).normal_(std=0.02))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
        of_pair, table = self._of_pair(at_q, at_k), self.table.to(q.dtype)
        return lambda b, h, i, j: table[self._row(of_pair(b, i, j)), h]

    def _row(self, distance: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        return torch.where(distance < 0, self.max_distance - distance, distance.clamp(max=self.max_distance))

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> Graphormer:
        part = Graphormer(stop - start, max_distance=self.max_distance).to(self.table)
        part.table.copy_(self.table[:, start:stop])
        return part


@checked
def shortest_paths(adjacency: Num[Tensor, "b n n"]) -> Int[Tensor, "b n n"]:
    """Edges of the shortest path between any two nodes, -1 where there is none. Weights do not count.

    adjacency  of undirected graphs, 0 where there is no edge; a node without any is a graph of its own

    Time O(n⁴) at most, n³ for each step of the longest path. Raises ValueError for a matrix that is not symmetric.
    """
    joined = (edges(adjacency) > 0).float()
    reached = torch.eye(joined.shape[-1], device=joined.device).expand_as(joined).bool()
    lengths = torch.full(joined.shape, NO_PATH, device=joined.device).masked_fill(reached, 0)
    for steps in range(1, joined.shape[-1]):
        new = (reached.float() @ joined > 0) & ~reached
        if not bool(new.any()):
            break
        lengths, reached = lengths.masked_fill(new, steps), reached | new
    return lengths
