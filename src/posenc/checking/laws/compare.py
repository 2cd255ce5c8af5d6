"""How near two results must be, and the error that says how far apart they are."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.laws.errors import LawBroken
from posenc.checking.laws.registry import Law
from posenc.encoding import PositionalEncoding
from posenc.support.identity import label


def tolerance(dtype: torch.dtype, expected: Tensor) -> float:
    """What another order of summation may change: a few roundings of the dtype, relative to the largest entry."""
    roundings = 4 if dtype in (torch.bfloat16, torch.float16) else 64
    return roundings * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0)


def difference(actual: Tensor, expected: Tensor) -> float:
    """The largest absolute difference; 0 where there is nothing to compare."""
    if not actual.numel():
        return 0.0
    return float((actual.detach().double() - expected.detach().double()).abs().max())


def close(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> None:
    """Raises LawBroken unless both are equal up to the order of summation."""
    within(law, encoding, actual, expected, tolerance(dtype, expected), what)


def equal(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> None:
    """Raises LawBroken unless both are equal up to one rounding: nothing is summed over tokens."""
    allowed = 2 * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0)
    within(law, encoding, actual, expected, allowed, what)


def same(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, what: str) -> None:
    """Raises LawBroken unless both are equal bit by bit."""
    within(law, encoding, actual, expected, 0.0, what)


def within(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, allowed: float, what: str) -> None:
    """Raises LawBroken unless no entry differs by more than `allowed`."""
    about = f"{law.__name__}: {label(encoding)}: {what}"
    if actual.shape != expected.shape:
        raise LawBroken(f"{about}: shape {list(actual.shape)}, expected {list(expected.shape)}")
    error = difference(actual, expected)
    if not error <= allowed:  # catches NaN too
        raise LawBroken(f"{about}: differs by {error:.3g}, allowed {allowed:.3g}")


def errors_allowed(reference: dict[str, Tensor], true: dict[str, Tensor], dtype: torch.dtype) -> dict[str, float]:
    """By how much each of a backend's results may differ from the true ones: by twice the reference's error and a few
    roundings, both of the largest among the outputs or among the gradients."""
    kinds = ([name for name in true if ("gradient of" in name) == of_gradients] for of_gradients in (False, True))
    return {
        name: max(2 * difference(reference[one], true[one]) + tolerance(dtype, true[one]) for one in kind)
        for kind in kinds
        for name in kind
    }
