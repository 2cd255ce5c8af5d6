"""ALiBi for attention both ways: learned slopes, one for keys before the query and one for those after it.

    logits += s_h · |i - j| for j < i,   t_h · |i - j| for j > i

The authors of ALiBi propose it for encoders (issue 5 of their repository), since the slopes of the paper (2108.12409)
cannot tell before from after. BERT models that follow them begin with slopes drawn from N(-2, 1); so it is here.
Legend: h query heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import DistanceBias
from posenc.support.checked import checked
from posenc.support.tensors import check_distances, on_device_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class AsymmetricALiBi(DistanceBias):
    """slope·|distance|, another slope before the query than after it, learned. Any length, integers or reals.

    n_heads  query heads

    Parameters: before and after [n_heads], N(-2, 1) at the start, without a bound: a positive one looks far away.
    Time and memory are ALiBi's.
    """

    exact_parameters = ("before", "after")

    @checked
    def __init__(self, n_heads: int) -> None:
        super().__init__(n_heads=n_heads)
        self.before = nn.Parameter(torch.empty(n_heads).normal_(-2.0, 1.0))
        self.after = nn.Parameter(torch.empty(n_heads).normal_(-2.0, 1.0))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        on_device_of(self.before, delta=delta)
        slopes = torch.where(delta > 0, self.before.double()[:, None], self.after.double()[:, None])
        return slopes * delta.abs()

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> AsymmetricALiBi:
        part = AsymmetricALiBi(stop - start).to(self.before)
        part.before.copy_(self.before[start:stop])
        part.after.copy_(self.after[start:stop])
        return part
