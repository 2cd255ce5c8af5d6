"""FoX for attention both ways: one forget gate for what lies before the query, another for what lies after it.

    logits += Σ_{t = j+1 … i} ln f_t for j < i,   Σ_{t = i+1 … j} ln g_t for j > i
    f_t = σ(w_h·x_t + b_h),   g_t = σ(w'_h·x_t + b'_h)

The forget gate is that of Lin et al. 2025, "Forgetting Transformer" (fox.py), whose paper is causal throughout. The form
for encoders is that of x-transformers: DataDependentAlibi with causal=False. In both directions the gate of the later
token of a pair counts, and that of the earlier one does not.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import ForgetGates
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import check_width


class BidirectionalFoX(ForgetGates):
    """S_i - S_j of one running sum before the query, and of another S'_j - S'_i after it.

    d_model     channels of the hidden states that go into the projections
    n_heads     query heads
    first_bias  b and b' at the start; 5 in x-transformers, where a gate keeps 0.993 of what lies beyond it

    Parameters: weight [n_heads·2, d_model], N(0, 0.02²) at the start, and offset [n_heads·2]: of every head the gate for
    keys before the query, then the gate for keys after it. Call read_hidden(x, at) once a layer; `Attention` does.
    Causal attention needs the first gate alone, and is FoX. Constant gates are asymmetric ALiBi.
    Time O(n·d_model) for the gates; the bias takes O(queries·keys). Running sums are kept in fp64.
    """

    traits = ForgetGates.traits - {"causal_only"}
    reads_vectors = False

    @checked
    def __init__(self, d_model: int, n_heads: int, *, first_bias: float = 5.0) -> None:
        if not abs(first_bias) <= torch.finfo(torch.float32).max:
            raise ValueError(f"first_bias: expected a number of float32, got {first_bias}")
        super().__init__(d_model, n_heads, per_head=2, offset=first_bias, first_bias=first_bias)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "n_heads", q.shape[1], self.n_heads, "q")
        before, after, dtype = slice(0, None, 2), slice(1, None, 2), q.dtype
        query, key, order_q, order_k = self.sums(at_q), self.sums(at_k), at_q.order, at_k.order
        query_before, key_before, query_after, key_after = (
            query[..., before],
            key[..., before],
            query[..., after],
            key[..., after],
        )

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            past = query_before[b, i, h] - key_before[b, j, h]
            return torch.where(order_k[b, j] <= order_q[b, i], past, key_after[b, j, h] - query_after[b, i, h]).to(dtype)

        return of_pair
