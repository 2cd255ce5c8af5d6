"""How near two results must be, and the error that says how far apart they are."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.engine import Measured, apart


def tolerance(dtype: torch.dtype, expected: Tensor) -> float:
    """What another order of summation may change: a few roundings of the dtype, relative to the largest entry."""
    roundings = 4 if dtype in (torch.bfloat16, torch.float16) else 64
    return roundings * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0)


def difference(actual: Tensor, expected: Tensor) -> float:
    """The largest absolute difference; 0 where there is nothing to compare."""
    if not actual.numel():
        return 0.0
    return float((actual.detach().double() - expected.detach().double()).abs().max())


def close(actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> Measured:
    """Both are equal up to the order of summation."""
    return within(actual, expected, tolerance(dtype, expected), what)


def equal(actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> Measured:
    """Both are equal up to one rounding: nothing is summed over tokens."""
    return within(actual, expected, 2 * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0), what)


def same(actual: Tensor, expected: Tensor, what: str) -> Measured:
    """Both are equal bit by bit."""
    return within(actual, expected, 0.0, what)


def within(actual: Tensor, expected: Tensor, allowed: float, what: str) -> Measured:
    """No entry differs by more than `allowed`. An infinity is no number that another may equal."""
    if actual.shape != expected.shape:
        return apart(actual, expected, allowed, what)
    return Measured(difference(actual, expected), allowed, what)


def errors_allowed(reference: dict[str, Tensor], true: dict[str, Tensor], dtype: torch.dtype) -> dict[str, float]:
    """By how much each of a backend's results may differ from the true ones: by twice the reference's error and a few
    roundings, both of the largest among the outputs or among the gradients."""
    kinds = ([name for name in true if ("gradient of" in name) == of_gradients] for of_gradients in (False, True))
    return {
        name: max(2 * difference(reference[result], true[result]) + tolerance(dtype, true[result]) for result in kind)
        for kind in kinds
        for name in kind
    }
