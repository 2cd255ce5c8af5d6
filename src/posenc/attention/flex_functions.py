"""The score_mod and mask_mod of FlexAttention, for a model that calls `flex_attention` itself.

    score_mod    score + b_h[position of the query - position of the key]        ALiBi, T5, KERPLE …
    mask_mod     same document, no padding, a key not after the query, window, chunk

`attend(…, impl="flex")` does the same by itself. Rotary encodings need no score_mod: rotate q and k before.

Legend: b batch, h query heads, i query, j key, n distances.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from posenc.attention.options import Options
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.structure import distance_terms
from posenc.support.checked import checked

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
LONGEST = 2**24  # distances of a table; a head's are 64 MiB


@checked
def score_mod(encoding: PositionalEncoding, at_q: Positions, at_k: Positions | None = None) -> ScoreMod:
    """A function for `flex_attention(score_mod=…)` that adds the encoding's bias.

        score_mod(score, b, h, i, j) = score + b_h[at_q[b, i] - at_k[b, j]]

    encoding   one whose bias depends on the distance alone; learned tables get gradients where FlexAttention has them
    at_q       positions of the queries, whole numbers; at_k of the keys, the same where left out. One row serves a batch

    The biases of all distances of the call are computed here, in fp32, [h, n]; the kernel looks them up. Make another for
    other positions and after the parameters have changed.

    Raises ValueError for an encoding that has no bias, or another one, and for positions that are not whole numbers or that
    are further apart than 2^24.
    """
    at_k = at_q if at_k is None else at_k
    name = type(encoding).__name__
    terms = distance_terms(encoding, encoding.structure())
    if terms is None or encoding.seams & {"rotate", "finish"}:
        raise ValueError(
            f"encoding: {name} is more than a bias of the distance, which a score_mod cannot express; use posenc.attend"
        )
    if not terms:
        raise ValueError(f"encoding: {name} has no bias, so that flex_attention needs no score_mod for it")
    for argument, at in (("at_q", at_q), ("at_k", at_k)):
        if at.coords.ndim != 2 or at.coords.is_floating_point():
            raise ValueError(f"{argument}: expected a whole number for each token, as biases are looked up by distance")
        if not at.coords.numel():
            raise ValueError(f"{argument}: expected positions of tokens, got none")
    query, key = at_q.coords, at_k.coords
    first, last = (int((query.amin() - key.amax()).item()), int((query.amax() - key.amin()).item()))
    if last - first >= LONGEST:
        raise ValueError(f"at_q: expected positions at most {LONGEST:,} apart, got {last - first + 1:,} distances")
    distances = torch.arange(first, last + 1, device=query.device)
    line = torch.stack([term.at_distance(distances).float() for term in terms]).sum(0)
    of_q, of_k = _row(at_q), _row(at_k)

    def added(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score + line[h, query[of_q(b), i] - key[of_k(b), j] - first].to(score.dtype)

    return added


@checked
def mask_mod(
    at_q: Positions,
    at_k: Positions | None = None,
    *,
    causal: bool = True,
    window: tuple[int | None, int | None] | None = None,
    chunk: int | None = None,
) -> MaskMod:
    """A function for `create_block_mask`: which key a query sees, as `attend` does with the same arguments.

        mask_mod(b, h, i, j) = same document · no padding · not after the query · within window and chunk

    at_q, at_k   as in `attend`; one row serves a batch
    causal       a query sees keys up to its own `order`
    window       (left, right): at most so many positions before and after the query; None is no limit
    chunk        a query sees keys of its own chunk of so many positions

    Raises ValueError for a window or a chunk that `attend` refuses.
    """
    at_k = at_q if at_k is None else at_k
    options = Options(window=window, chunk=chunk)
    (left, right), chunk = options.window or (None, None), options.chunk
    of_q, of_k, order_q, order_k = at_q.document, at_k.document, at_q.order, at_k.order
    row_q, row_k = _row(at_q), _row(at_k)

    def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        q, k = row_q(b), row_k(b)
        document = of_q[q, i]
        allowed = (document == of_k[k, j]) & (document >= 0)
        ahead = order_q[q, i] - order_k[k, j]
        if causal:
            allowed = allowed & (ahead >= 0)
        if left is not None:
            allowed = allowed & (ahead <= left)
        if right is not None:
            allowed = allowed & (-ahead <= right)
        if chunk is not None:
            allowed = allowed & (order_q[q, i] // chunk == order_k[k, j] // chunk)
        return allowed

    return sees


def _row(at: Positions) -> Callable[[Tensor], Tensor]:
    """The row of the positions that a row of the batch has: its own, or the only one."""
    return torch.zeros_like if at.batch == 1 else lambda b: b
