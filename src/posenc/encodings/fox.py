"""A forget gate on softmax attention: every token says how much of what came before it each head keeps.

    logits += Σ_{t = j+1 … i} ln f_t,   f_t = σ(w_h·x_t + b_h)

Lin et al. 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate" (FoX), section 3. The sum is S_i - S_j of
running sums S, which travel with the positions and are cached with the keys. It is added after the scale 1/√d; in
flash-linear-attention's PaTH with a forget gate the sum is divided by √d too.
Legend: b batch, h query heads, i query, j key.
"""

from __future__ import annotations

from torch import Tensor

from posenc.encoding import BiasFn
from posenc.encodings.bases.content_dependent import ForgetGates
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import one_per_head


class FoX(ForgetGates):
    """S_i - S_j, S the running sum of ln σ(w·x + b) over the tokens of a document.

    d_model  channels of the hidden states that go into the projections
    n_heads  query heads

    Parameters: weight [n_heads, d_model], offset [n_heads]. They start as in the authors' code: N(0, 0.02²), and zero, so
    that every gate starts near ½. The authors train with and without RoPE: Stack(RoPE(d_head), FoX(d_model, n_heads)).
    Call read_hidden(x, at) once a layer; `Attention` does. A constant gate e^-m is ALiBi of slope m.
    Time O(n·d_model) for the gates, and one number for each head and token of the cache; the bias takes O(queries·keys),
    held for 128 queries at a time in causal rows of more than 512 tokens on the CPU.
    Running sums are kept in fp64, so that neighbours are told apart after a million tokens.
    """

    reads_vectors = False

    @checked
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__(d_model, n_heads)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        one_per_head(self.offset[:, None], q)
        query, less, dtype = self.sums(at_q), -self.sums(at_k), q.dtype  # so the gradient of no pair is negated
        return lambda b, h, i, j: (query[b, i, h] + less[b, j, h]).to(dtype)
