"""The check of correctness before timing: the largest error of each contender against the exact result.

error = max |got - exact|, infinite for NaN, a wrong shape or a missing result;   `allowed` is the limit for ours
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Judged:
    """Errors in the order of the contest's results; a peer may give fewer results than there are."""

    errors: list[float]
    allowed: list[float]

    @property
    def passed(self) -> bool:
        complete = len(self.errors) == len(self.allowed)
        return complete and all(error <= limit for error, limit in zip(self.errors, self.allowed, strict=True))


def judge(got: Sequence[Tensor], exact: Sequence[Tensor], allowed: list[float]) -> Judged:
    return Judged([largest_error(tensor, true) for tensor, true in zip(got, exact, strict=False)], allowed)


def largest_error(got: Tensor, exact: Tensor) -> float:
    if got.shape != exact.shape:
        return math.inf
    worst = 0.0
    for row, true in zip(
        got.detach().split(1) if got.ndim else (got,), exact.split(1) if exact.ndim else (exact,), strict=True
    ):
        difference = (row.to(exact.device).double() - true).abs().max()
        worst = max(worst, difference.item() if bool(torch.isfinite(difference)) else math.inf)
    return worst


def limits(
    usual: Sequence[Tensor], exact: Sequence[Tensor], *, times: int, roundings: int, dtype: torch.dtype = torch.float32
) -> list[float]:
    """The limits of results: `times` the error of usual code, and some roundings of the largest, for the order of sums."""
    return [
        times * largest_error(tensor, true) + roundings * rounding(dtype) * true.abs().max().item()
        for tensor, true in zip(usual, exact, strict=True)
    ]


def rounding(dtype: torch.dtype) -> float:
    """The largest relative error of one rounding: 2^-24 for float32, 2^-8 for bfloat16."""
    return torch.finfo(dtype).eps / 2
