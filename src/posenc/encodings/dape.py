"""A bias that adapts to the content: a small network reads the scores of all heads beside a bias of the distance.

    logits = s + b + W₂·leaky_relu(W₁·[s ; b] + c₁) + c₂          over the heads of one pair (i, j); s = q·k/√d

Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation", section 3. In version 2 ("DAPE V2:
Process Attention Score as Feature Map", Zheng et al. 2024) W₁ and W₂ are convolutions over the keys: dape_v2.py. There
both read the keys that the query may see, in causal order; everything else counts as 0.
Legend: b batch, h query heads, i query, j key, w width, s keys that a convolution reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.content_dependent import by_document_and_order
from posenc.encodings.fire import FIRE
from posenc.encodings.kerple import KERPLE
from posenc.positions import Positions
from posenc.structure import Scores
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.identity import label
from posenc.support.tensors import check_width, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float

Over = Literal["kerple", "alibi", "fire"]
BIASES: dict[str, type[KERPLE | ALiBi | FIRE]] = {"kerple": KERPLE, "alibi": ALiBi, "fire": FIRE}


class DAPE(PositionalEncoding):
    """s + b + f(s, b), f a network of one hidden layer over the heads.

    n_heads  query heads
    over     the bias b: "kerple", which is best in the paper, "alibi" or "fire"
    width    hidden units of f
    kernel   keys that each layer of f reads, an odd number: 1 in version 1, 3 in version 2

    Parameters: inner [width, 2·n_heads, kernel] and inner_offset [width], outer [n_heads, width, kernel] and
    outer_offset [n_heads], and those of b. They start as the authors' linear layers. With f = 0 it is b alone.
    The scores of all heads meet, so `heads` is refused. Time O(queries·keys·n_heads·width·kernel), memory
    O(queries·keys·(n_heads + width)): no fused kernel can serve it.
    Raises ValueError for an even kernel and another b, NotImplementedError for `heads`.
    """

    reads_vectors = False

    @checked
    def __init__(self, n_heads: int, *, over: Over = "kerple", width: int = 32, kernel: int = 1) -> None:
        checks.whole(n_heads=n_heads, width=width, kernel=kernel)
        checks.one_of(get_args(Over), over=over)
        if kernel % 2 == 0:
            raise ValueError(f"kernel: expected an odd number from 1, got {kernel}")
        super().__init__(n_heads=n_heads, over=over, width=width, kernel=kernel)
        self.n_heads, self.kernel = n_heads, kernel
        self.over = BIASES[over](n_heads)
        self.traits = self.over.traits
        self.inner, self.inner_offset = _layer(width, 2 * n_heads, kernel)
        self.outer, self.outer_offset = _layer(n_heads, width, kernel)

    def finish(self, scores: Scores) -> Tensor:
        return scores.mix(scores.weights(self._adapted(scores)))

    def _adapted(self, scores: Scores) -> Float[Tensor, "b h i j"]:
        """s + b + f(s, b) of every pair."""
        logits, at_k, seen = scores.logits, scores.at_k, scores.seen
        check_width(self, "n_heads", logits.shape[1], self.n_heads, "logits")
        bias = self._bias(logits, scores.q, scores.at_q, at_k)
        with full_precision(logits):
            read = torch.cat([logits, bias], dim=1)  # [b, 2h, i, j]
            if self.kernel == 1:
                return logits + bias + self._network(read, None)
            if seen.shape[1] > 1:
                raise ValueError(
                    f"mask: expected one for all heads, [b, 1, i, j], since the network of {label(self)} reads "
                    f"neighbouring keys in the scores of all heads; got one for each of {seen.shape[1]} heads"
                )
            index = None if at_k.consecutive_in == "row" else by_document_and_order(at_k)
            read, seen = _along_keys(read, index), _along_keys(seen, index)
            added = self._network(read.masked_fill(~seen, 0), seen)
            return logits + bias + _along_keys(added, None if index is None else index.argsort(dim=1))

    def _bias(self, logits: Tensor, q: Tensor, at_q: Positions, at_k: Positions) -> Float[Tensor, "b h i j"]:
        """b of every pair; it reads positions alone."""
        anything = q.new_zeros(*q.shape[:2], at_k.length, q.shape[3])
        at = [torch.arange(size, device=q.device) for size in logits.shape]
        of_pair = self.over.bias(q, anything, at_q, at_k)
        bias: Tensor = of_pair(at[0][:, None, None, None], at[1][:, None, None], at[2][:, None], at[3])
        return bias.to(logits.dtype).expand_as(logits)

    def _network(self, read: Float[Tensor, "b c i j"], seen: Bool[Tensor, "b 1 i j"] | None) -> Float[Tensor, "b h i j"]:
        hidden = F.leaky_relu(_convolved(read, self.inner, self.inner_offset))
        return _convolved(hidden if seen is None else hidden.masked_fill(~seen, 0), self.outer, self.outer_offset)

    def heads(self, start: int, stop: int) -> DAPE:
        raise NotImplementedError(
            "DAPE: its network reads the scores of all heads; a slice of them has no encoding of its own"
        )


def _layer(rows: int, columns: int, kernel: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights and offsets as torch's own layers start: U(-1, 1)/√(columns·kernel)."""
    bound = (columns * kernel) ** -0.5
    weight, offset = torch.empty(rows, columns, kernel), torch.empty(rows)
    return nn.Parameter(weight.uniform_(-bound, bound)), nn.Parameter(offset.uniform_(-bound, bound))


def _convolved(
    x: Float[Tensor, "b c i j"], weight: Float[Tensor, "w c s"], offset: Float[Tensor, "w"]
) -> Float[Tensor, "b w i j"]:
    """Along the keys, s of them around each; absent ones are 0. With s = 1 it is a product with a matrix."""
    keys, reach = x.shape[-1], weight.shape[-1] // 2
    around = F.pad(x, (reach, reach)) if reach else x
    out = offset.to(x.dtype)[:, None, None]
    for step in range(weight.shape[-1]):
        out = out + torch.einsum("wc,bcij->bwij", weight[..., step].to(x.dtype), around[..., step : step + keys])
    return out


def _along_keys(x: Tensor, index: Tensor | None) -> Tensor:
    """[b, c, i, j] with the keys of every row in the order of index [b, j]; as they stand without one."""
    return x if index is None else x.gather(-1, index[:, None, None, :].expand(-1, *x.shape[1:]))


@checked
def dape_v2(n_heads: int, *, over: Over = "kerple", width: int = 32, kernel: int = 3) -> DAPE:
    """`DAPE` with a convolution over neighbouring keys.

    n_heads  query heads
    over     the bias of the distance: "kerple", "alibi" or "fire"
    width    hidden units of the network
    kernel   keys that each of its two layers reads, an odd number

    Raises ValueError for an even kernel.
    """
    return DAPE(n_heads, over=over, width=width, kernel=kernel)
