"""A network of a few layers reads the signed distance, or its logarithm, and says a number for each head.

    logits += (W·a_L + b)_h,   a_1 = silu(w·x + c),   a_{l+1} = silu(W_l·a_l + c_l)
    x = i - j,  or  sign(i - j)·ln(1 + |i - j|)

x-transformers' DynamicPositionBias. The name is that of Wang et al. 2021, "CrossFormer", section 3.3, whose network reads
the difference in rows and columns of a window and has norms and relu.
Legend: h query heads, n distances, c channels of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import DistanceBias
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_distances, exact_dtype, on_device_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class DynamicPositionBias(DistanceBias):
    """network(i - j) for each head, of any distance, integers or reals.

    n_heads       query heads
    width         channels of the network
    depth         its layers before the last
    log_distance  it reads sign(i - j)·ln(1 + |i - j|)

    Parameters: inner [2, width] holds w and c, middle [depth-1, width, width] and middle_offset [depth-1, width] W_l and
    c_l, outer [n_heads, width] and offset [n_heads] W and b. They start as torch's linear layers.
    Time O((queries + keys)·width²) for the network of a call on consecutive positions; O(queries·keys·width²) elsewhere.
    The toeplitz backend does not serve it: gradients of w sum distances times small differences, lost in bfloat16.
    """

    exact_parameters = ("inner",)

    @checked
    def __init__(self, n_heads: int, *, width: int = 64, depth: int = 2, log_distance: bool = False) -> None:
        checks.whole(n_heads=n_heads, width=width, depth=depth)
        super().__init__(n_heads=n_heads, width=width, depth=depth, log_distance=log_distance)
        self.log_distance = log_distance
        bound = width**-0.5
        self.inner = nn.Parameter(torch.empty(2, width, dtype=exact_dtype()).uniform_(-1, 1))
        self.middle = nn.Parameter(torch.empty(depth - 1, width, width).uniform_(-bound, bound))
        self.middle_offset = nn.Parameter(torch.empty(depth - 1, width).uniform_(-bound, bound))
        self.outer = nn.Parameter(torch.empty(n_heads, width).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.empty(n_heads).uniform_(-bound, bound))

    def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:
        check_distances(delta)
        on_device_of(self.inner, delta=delta)
        x = delta.double()
        if self.log_distance:
            x = x.sign() * x.abs().log1p()
        w, c = self.inner.double()
        hidden = F.silu(x[:, None] * w + c)  # n c
        for weight, offset in zip(self.middle, self.middle_offset, strict=True):
            hidden = F.silu(F.linear(hidden, weight.double(), offset.double()))
        return F.linear(hidden, self.outer.double(), self.offset.double()).T

    def structure(self) -> None:
        return None

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> DynamicPositionBias:
        part = DynamicPositionBias(**{**self.configuration, "n_heads": stop - start}).to(self.outer)
        for name, target in part.named_parameters():
            source = getattr(self, name)
            target.copy_(source[start:stop] if name in ("outer", "offset") else source)
        return part
