"""Values of pairs of tokens that coordinates do not hold: graph distances, edges, walks. They are passed to the encoding.

    at = encoding.with_pairs(at, pairs)      row i of pairs is that of token i: its values with the nodes at 0, 1, …

The rows travel with the positions as tables of that encoding, so that they are gathered and cut with the tokens. Packed
graphs are documents whose coordinates begin at 0 each.
Legend: b batch, t tokens, m nodes, h query heads, i query, j key, f features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.identity import label, without_digests
from posenc.support.tensors import check_accepted, check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num

OfPair = Callable[[Tensor, Tensor, Tensor], Tensor]


class OfPairs(PositionalEncoding):
    """A bias that reads a value of each pair of query and key. A class says what it makes of them in `bias`."""

    reads_vectors = False
    features = 0  # of a pair, in the last axis; 0: one value

    @checked
    def with_pairs(self, at: Positions, pairs: Num[Tensor, "b t m *features"]) -> Positions:
        """The same positions carrying `pairs`: those of token i of row b with the node at coordinate 0 … m-1 of its graph.

        Coordinates are whole numbers, those of the nodes of a graph in their order. Raises ValueError for pairs of other
        rows or tokens, and coordinates that are no column (a device assert off the CPU).
        """
        check_coords(self, at, integers=True)
        expected = [at.length, "m", *([self.features] if self.features else [])]
        of_a_pair = list(pairs.shape[3:]) == ([self.features] if self.features else [])
        if pairs.ndim < 3 or at.batch not in (1, len(pairs)) or pairs.shape[1] != at.length or not of_a_pair:
            raise ValueError(
                f"pairs: expected [{'b' if at.batch == 1 else at.batch}, {', '.join(map(str, expected))}], of each token "
                f"with each node, got {list(pairs.shape)}"
            )
        at = at.expand(len(pairs))
        inside = (at.coords >= 0) & (at.coords < pairs.shape[2])
        check_accepted(at.coords, inside, f"{type(self).__name__}: a token at {{}} is none of {pairs.shape[2]} nodes")
        copied = at.replaced(coords=at.coords.clone(memory_format=torch.contiguous_format))  # rows differ in their pairs
        return copied.replaced(tables={**copied.tables, self.identity: (pairs,)})

    def _of_pair(self, at_q: Positions, at_k: Positions) -> OfPair:
        """(b, i, j) to the value of the pair. Raises ValueError for positions that carry none of this encoding."""
        if self.identity not in at_q.tables:
            others = f"tables of {', '.join(map(without_digests, at_q.tables))} and " if at_q.tables else ""
            raise ValueError(
                f"positions: they carry {others}no pairs of {label(self)}; take encoding.with_pairs(at, pairs) of the "
                "encoding that reads them"
            )
        (rows,), node = at_q.tables[self.identity], at_k.coords
        return lambda b, i, j: rows[b, i, node[b, j]]


class PairBias(OfPairs):
    """logits += w_h·p_ij, a learned linear map of the features of a pair: RRWP (`walks`), edges along a path (Graphormer).

    n_heads   query heads
    features  numbers of a pair

    Parameters: weight [n_heads, features], zero at the start. Shortest paths with edges x_1 … x_N, Σ w_n·x_n / N, have
    x_n / N one after the other as their features. Raises ValueError for tokens without pairs.
    """

    @checked
    def __init__(self, n_heads: int, features: int) -> None:
        checks.whole(features=features)
        super().__init__(n_heads=n_heads, features=features)
        self.features = features
        self.weight = nn.Parameter(torch.zeros(n_heads, features))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        of_pair, weight = self._of_pair(at_q, at_k), self.weight.to(q.dtype)
        return lambda b, h, i, j: (of_pair(b, i, j).to(q.dtype) * weight[h]).sum(-1)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PairBias:
        part = PairBias(stop - start, self.features).to(self.weight)
        part.weight.copy_(self.weight[start:stop])
        return part


@checked
def walks(adjacency: Num[Tensor, "b n n"], steps: int = 8) -> Float[Tensor, "b n n steps"]:
    """RRWP: the identity and the powers of D⁻¹A, the chances that a walk of 0, 1, … steps-1 steps from i ends at j; fp64.

    Ma et al. 2023, "Graph Inductive Biases in Transformers without Message Passing" (GRIT), section 3.1, equation 1.
    A node without edges has the identity alone.
    """
    checks.whole(steps=steps)
    weights = adjacency.double()
    degree = weights.sum(dim=-1, keepdim=True)
    step = weights / degree.masked_fill(degree == 0, 1)
    power = torch.eye(step.shape[-1], dtype=step.dtype, device=step.device).expand_as(step)
    powers = []
    for _ in range(steps):
        powers.append(power)
        power = power @ step
    return torch.stack(powers, dim=-1)
