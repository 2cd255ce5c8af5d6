"""Attention and its parts by explicit loops in fp64, from the formulas alone: nothing here is imported from src.

Arrays are numpy, [b, h, i, d] for queries, [b, g, j, d] for keys; lists of positions are plain lists, one per row.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

EXACT = 1e-12  # what fp64 sums of a few dozen terms of size one may differ by


def draw(seed: int, *shape: int) -> np.ndarray:
    """Random values of size one: never symmetric, never zero."""
    return np.random.default_rng(seed).normal(size=shape)


def close(got, expected, atol: float = EXACT) -> None:
    """Raises AssertionError where the two, tensors or arrays, differ by more than `atol` or in shape."""
    got, expected = (np.asarray(value.detach() if hasattr(value, "detach") else value) for value in (got, expected))
    assert got.shape == expected.shape, f"got shape {got.shape}, expected {expected.shape}"
    np.testing.assert_allclose(got, expected, atol=atol, rtol=0)


def each(*sizes: int):
    """Every index of an array of these sizes."""
    return np.ndindex(*sizes)


def products(q: np.ndarray, k: np.ndarray, scale: float | None = None) -> np.ndarray:
    """q_i·k_j·scale for every pair; query head h reads key head h // (query heads / key heads). 1/√d unless said."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    share = q.shape[1] // k.shape[1]
    logits = np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in each(*logits.shape):
        logits[b, h, i, j] = sum(q[b, h, i, c] * k[b, h // share, j, c] for c in range(q.shape[3])) * scale
    return logits


def add(logits: np.ndarray, term) -> np.ndarray:
    """logits + term(b, h, i, j)."""
    return logits + np.array([term(*at) for at in each(*logits.shape)]).reshape(logits.shape)


def sees(order_q, order_k, document_q=None, document_k=None, causal=True):
    """(b, i, j) -> whether the query may see the key: same document, no padding, and a key not after the query."""

    def may(b: int, i: int, j: int) -> bool:
        if document_q is not None and (document_q[b][i] != document_k[b][j] or document_q[b][i] == -1):
            return False
        return not causal or order_k[b][j] <= order_q[b][i]

    return may


def softmax(logits: np.ndarray, may) -> np.ndarray:
    """Over the keys that may be seen; a query that sees none has weights of zero."""
    weights = np.zeros_like(logits)
    for b, h, i in each(*logits.shape[:3]):
        seen = [j for j in range(logits.shape[3]) if may(b, i, j)]
        if seen:
            highest = max(logits[b, h, i, j] for j in seen)
            terms = {j: math.exp(logits[b, h, i, j] - highest) for j in seen}
            for j in seen:
                weights[b, h, i, j] = terms[j] / sum(terms.values())
    return weights


def attention(logits: np.ndarray, v: np.ndarray, may, addend=None) -> np.ndarray:
    """Σ_j softmax_ij · (v_j + addend(b, h, i, j))."""
    weights = softmax(logits, may)
    share = logits.shape[1] // v.shape[1]
    out = np.zeros((*logits.shape[:3], v.shape[3]))
    for b, h, i, j in each(*logits.shape):
        row = v[b, h // share, j]
        out[b, h, i] += weights[b, h, i, j] * (row if addend is None else row + addend(b, h, i, j))
    return out


def channels(pair: int, width: int, layout: str) -> tuple[int, int]:
    """The two channels of a pair among the first `width`: interleaved (2i, 2i+1), half (i, i + width/2)."""
    return (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + width // 2)


def turned(x: np.ndarray, angles, layout: str, scales=None) -> np.ndarray:
    """One vector, its pair n turned by angles[n] counter-clockwise (and stretched by scales[n]); the rest as it is."""
    out = np.array(x, dtype=np.float64)
    for pair, angle in enumerate(angles):
        first, second = channels(pair, 2 * len(angles), layout)
        stretch = 1.0 if scales is None else scales[pair]
        out[first] = (x[first] * math.cos(angle) - x[second] * math.sin(angle)) * stretch
        out[second] = (x[first] * math.sin(angle) + x[second] * math.cos(angle)) * stretch
    return out


# 2π to 40 decimals, for angles so large that the product in fp64 would be the larger error.
TWO_PI = Fraction(62831853071795864769252867665590057683943, 10**40)


def power(base: int, numerator: int, denominator: int) -> Fraction:
    """base^(-numerator/denominator) to 40 decimals, by an integer root of the exact power."""
    digits = 10**40
    target = digits**denominator // base**numerator  # (10^40 · base^(-n/d))^d
    low, high = 0, digits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**denominator <= target else (low, middle)
    return Fraction(low, digits)


def exact_angle(position: int, base: int, numerator: int, denominator: int) -> float:
    """position · base^(-numerator/denominator) modulo 2π, every digit of it right."""
    angle = position * power(base, numerator, denominator)
    return float(angle - TWO_PI * (angle // TWO_PI))


def near_once_rounded(got: np.ndarray, exact: np.ndarray, bits: int, largest: float) -> None:
    """Raises AssertionError where `got` is further from `exact` than one rounding to `bits` after fp32 arithmetic on values
    up to `largest`."""
    error = np.abs(got - exact) - half_ulp(exact, bits) - 2e-6 * largest
    assert error.max() <= 0, f"{error.max():.2e} beyond one rounding"


def half_ulp(value: np.ndarray, bits: int) -> np.ndarray:
    """Half of the spacing of floats with `bits` of significand (24 fp32, 11 fp16, 8 bf16) around `value`."""
    return np.exp2(np.floor(np.log2(np.maximum(np.abs(value), 1e-30))) - bits)
