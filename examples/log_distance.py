"""The logit falls with the logarithm of the distance, at a rate that every head learns.

    logits += -r_h · ln(1 + |i - j|),   r_h > 0

Chi et al. 2022, "KERPLE", the logarithmic kernel with its inner scale at 1.
Legend: h query heads, n distances.
"""

import torch
from torch import nn
from torch.nn import functional as F

from posenc import DistanceBias


class LogDistance(DistanceBias):
    def __init__(self, n_heads):
        super().__init__(n_heads=n_heads)
        self.rate = nn.Parameter(torch.linspace(-1, 1, n_heads))

    def at_distance(self, delta):
        return -F.softplus(self.rate)[:, None] * torch.log1p(delta.abs().to(self.rate.dtype))

    @torch.no_grad()
    def heads(self, start, stop):
        part = LogDistance(stop - start).to(self.rate)
        part.rate.copy_(self.rate[start:stop])
        return part
