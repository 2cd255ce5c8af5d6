"""A forget gate on softmax attention: every token says how much of what came before it each head keeps.

    logits += Σ_{t = j+1 … i} ln f_t,   f_t = σ(w_h·x_t + b_h)

Lin et al. 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate" (FoX), section 3. The sum is S_i - S_j of
running sums S, which travel with the positions and are cached with the keys. It is added after the scale 1/√d; in
flash-linear-attention's PaTH with a forget gate the sum is divided by √d too.
Legend: b batch, t tokens, h query heads, i query, j key, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc import checks
from posenc.bilingual import Words
from posenc.checked import checked
from posenc.content_dependent import read_earlier, running_sum
from posenc.encoding import (
    BiasFn,
    PositionalEncoding,
    Site,
    check_tokens,
    check_width,
    full_precision,
    one_per_head,
    working_dtype,
)
from posenc.entry import Entry
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.shapes import Float


class FoX(PositionalEncoding):
    """S_i - S_j, S the running sum of ln σ(w·x + b) over the tokens of a document.

    d_model  channels of the hidden states that go into the projections
    n_heads  query heads

    Parameters: weight [n_heads, d_model], offset [n_heads]. They start as in the authors' code: N(0, 0.02²), and zero, so
    that every gate starts near ½. The authors train with and without RoPE: Stack(RoPE(d_head), FoX(d_model, n_heads)).
    Call read(x, at) once a layer; `Attention` does. A constant gate e^-m is ALiBi of slope m.
    Time O(n·d_model) for the gates, and one number for each head and token of the cache; the bias takes O(queries·keys).
    Running sums are kept in fp64, so that neighbours are told apart after a million tokens.
    """

    sites = Site.BIAS
    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})
    learned_tables = True

    @checked
    def __init__(self, d_model: int, n_heads: int) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads)
        super().__init__(d_model=d_model, n_heads=n_heads)
        self.d_model, self.n_heads = d_model, n_heads
        self.weight, self.offset = nn.Parameter(torch.empty(n_heads, d_model)), nn.Parameter(torch.zeros(n_heads))
        nn.init.normal_(self.weight, std=0.02)

    def read(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None = None) -> Positions:
        check_tokens(self, x, at, axis=1)
        check_width(self, "d_model", x.shape[-1], self.d_model)
        at = at.expand(x.shape[0])
        dtype = working_dtype(x.dtype)
        with full_precision(x):
            kept = self._log_gates(F.linear(x.to(dtype), self.weight.to(dtype), self.offset.to(dtype)))
            total = running_sum(kept, at, None if past is None else self._sums(past))
        return at.replaced(states={**at.states, self.owner: (total,)})

    def _log_gates(self, logits: Float[Tensor, "b t h"]) -> Float[Tensor, "b t h"]:
        """ln f of the numbers w·x + b."""
        return F.logsigmoid(logits)

    def _sums(self, at: Positions) -> Float[Tensor, "b t h"]:
        """S of every token, in fp64. Raises ValueError for positions that carry nothing read by this very module."""
        return read_earlier(self, at)[0]

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        one_per_head(self.offset, q)
        query, key, dtype = self._sums(at_q), self._sums(at_k), q.dtype
        return lambda b, h, i, j: (query[b, i, h] - key[b, j, h]).to(dtype)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> FoX:
        part = type(self)(**{**self.configuration, "n_heads": stop - start}).to(self.weight)
        part.weight.copy_(self.weight[start:stop])
        part.offset.copy_(self.offset[start:stop])
        return part


ENTRY = Entry(
    name="fox",
    class_name="FoX",
    title=Words("FoX", "遗忘门注意力"),
    kind="contextual",
    published="2025-03",
    needs=("parameters", "hidden_states", "causal"),
    per_layer=True,
    formula="q·k + Σ ln σ(w·xₜ + b)",
    also_called=("forgetting_transformer", "forgetting_attention", "forget_gate", "ForgettingAttention", "遗忘门"),
    used_by=(Words("research: language models by its authors", "研究：作者的语言模型"), "flash-linear-attention"),
    source="Lin et al. 2025, arXiv 2503.02130, section 3",
    idea=Words(
        "Every token computes a gate between 0 and 1 for each head: how much of what came before it is kept. "
        "The logarithms of all gates between a key and a query are added to their score. "
        "The attention to a token therefore fades with the content in between, not with a fixed distance.",
        "每个词为每个头算一个 0 到 1 之间的门：之前的内容保留多少。"
        "键和查询之间所有门的对数加到它们的分数上。因此注意力的衰减取决于中间的内容，而不是固定的距离。",
    ),
)
