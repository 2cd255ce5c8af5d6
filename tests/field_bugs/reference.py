"""Formulas of the field's papers in numpy fp64, for tests of shipped bugs. Nothing here is imported from src."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import torch

from oracles.by_hand import channels, half_ulp

FAR = (0, 1, 40, 511, 700, 4095, 16_000, 131_071, 1_000_000)


def frequencies(width: int, base: float = 10000.0) -> np.ndarray:
    """base^(-2i/width) of every pair."""
    return np.array([base ** (-2 * i / width) for i in range(width // 2)])


def angles(positions, omega: np.ndarray) -> np.ndarray:
    """[t, pairs]"""
    return np.asarray(positions, dtype=np.float64)[:, None] * omega


def rotated(x: torch.Tensor, positions, omega: np.ndarray, layout: str = "interleaved", scale: float = 1.0) -> np.ndarray:
    """Tokens x [..., t, d], the first 2·pairs channels of token n turned by positions[n]·omega."""
    given = x.detach().double().numpy()
    out, turn = given.copy(), angles(positions, omega)
    for pair in range(len(omega)):
        first, second = channels(pair, 2 * len(omega), layout)
        cos, sin = scale * np.cos(turn[:, pair]), scale * np.sin(turn[:, pair])
        out[..., first] = given[..., first] * cos - given[..., second] * sin
        out[..., second] = given[..., first] * sin + given[..., second] * cos
    return out


def sinusoids(positions, width: int, base: float = 10000.0) -> np.ndarray:
    """sin and cos of every pair in turn, [t, width]."""
    turn = angles(positions, frequencies(width, base))
    return np.stack([np.sin(turn), np.cos(turn)], axis=-1).reshape(len(turn), width)


def softmax(logits: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Over the last axis, of what may be seen."""
    logits = np.where(seen, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def slopes(n: int) -> list[float]:
    """ALiBi's slopes, in the words of the paper's footnote 8 and its published code."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**h for h in range(n)]
    below = 2 ** math.floor(math.log2(n))
    return slopes(below) + slopes(2 * below)[0::2][: n - below]


def t5_bucket(delta: int, n_buckets: int, max_distance: int, both_ways: bool) -> int:
    """The bucket of query - key = delta, by powers of whole numbers: no logarithm, no rounding."""
    side = n_buckets // 2 if both_ways else n_buckets
    after = side if both_ways and delta < 0 else 0
    distance = abs(delta) if both_ways else max(delta, 0)
    exact = side // 2
    if distance < exact:
        return after + distance
    steps, m = side - exact, 0
    while m + 1 < steps and distance**steps >= max_distance ** (m + 1) * exact ** (steps - m - 1):
        m += 1
    return after + exact + m


def rounded_once(got: torch.Tensor, exact: np.ndarray, what: str = "") -> None:
    """Raises AssertionError where `got` is not the result rounded to its dtype once, after fp32 arithmetic."""
    bits = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 24}[got.dtype]
    error = np.abs(got.detach().double().numpy() - exact)
    allowed = half_ulp(exact, bits) + 5e-7 * np.abs(exact).max()
    assert (error <= allowed).all(), f"{what}: {(error > allowed).mean():.1%} of the elements are rounded more than once"


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
