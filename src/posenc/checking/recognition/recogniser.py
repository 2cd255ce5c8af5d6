"""Recognises a table of numbers: `recognise(table)`.

numbers ─► their dtype ─► a formula (fit.py) ─► which rows it misses, and which known mistake explains them ─► findings
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from posenc.checking.recognition import findings
from posenc.checking.recognition.findings import Observation
from posenc.checking.recognition.fit import LARGEST_OFFSET, fits, spread, uneven
from posenc.checking.recognition.formula import PAIRED, Arithmetic, Formula, Layout, Rounded

MOST_ROWS = 65536
MOST_CHANNELS = 4096
MOST_NUMBERS = 2**22
LARGEST = 1e30  # numbers beyond are no positions, and their squares overflow
# Half a unit in the last place below 1; in float32 a little more, which its sines and cosines may err by.
ROUNDING: dict[Rounded, float] = {"float64": 4e-16, "float32": 1.2e-7, "float16": 2**-12, "bfloat16": 2**-9}
SAMPLED_ROWS = 1024
# In the order of trying: the first that explains the table as well as any.
MISTAKES: tuple[Arithmetic, ...] = (
    "float32",
    "exp_log",
    "power",
    "bfloat16_positions",
    "float16_positions",
    "bfloat16",
    "float16",
)


@dataclass(frozen=True)
class Recognised:
    """The result of `recognise`.

    formula     None where the table is no sinusoid
    arithmetic  how its angles were computed: "exact", or the mistake that explains the difference
    dtype       the narrowest dtype that holds every number
    transposed  positions run along the columns
    table       what the formula gives, exact and rounded once to dtype, in the shape of the table; None without a formula
    residual    the largest difference from it, in amplitudes, and `at`: the row and column where it is
    unexplained the same once the arithmetic is taken into account
    silent      rows that are all zeros, such as the row of the padding token
    findings    sentences in both languages, the most telling first
    python      lines that make the right table as `recognised`, or that describe the given `table`
    """

    formula: Formula | None
    arithmetic: Arithmetic
    dtype: Rounded
    transposed: bool
    table: np.ndarray | None
    residual: float | None
    at: tuple[int, int] | None
    unexplained: float | None
    allowed: float | None
    silent: tuple[int, ...]
    findings: tuple[Observation, ...]
    python: str


def recognise(table: Any) -> Recognised:
    """Infers layout, base, offset, denominator, odd width, amplitude, dtype, orientation and known mistakes of a table.

    table   [rows, channels], or with axes of length 1 besides: an array, a tensor or nested lists of real numbers

    Speeds must form a geometric progression from one of the `Layout`s; tables of cosines or sines alone must begin at
    position 0. Everything else is described, not guessed. Raises ValueError for what is no such table, or too large.
    """
    numbers = matrix(table)
    dtype = _dtype(numbers)
    finite = np.isfinite(numbers)
    if not finite.all():
        told = [findings.not_finite(numbers, finite), findings.repeated(numbers)]
        return _unknown(dtype, told, "")
    if not numbers.any() or (numbers == numbers[:1]).all():
        return _unknown(dtype, [findings.constant(numbers), findings.dtype(dtype)], "")
    if not 1 / LARGEST <= (size := float(np.abs(numbers).max())) <= LARGEST:
        return _unknown(dtype, [findings.out_of_range(size), findings.repeated(numbers), findings.dtype(dtype)], "")
    for transposed in (False, True):
        if result := _as(numbers.T if transposed else numbers, dtype, transposed):
            return result
    told = [
        findings.no_sinusoid(),
        *_turning(numbers, dtype),
        *findings.rows(numbers),
        findings.repeated(numbers),
        findings.dtype(dtype),
    ]
    return _unknown(dtype, told, "norms = table.norm(dim=1)\nsimilarity = torch.cosine_similarity(table[:-1], table[1:])")


def matrix(table: Any) -> np.ndarray:
    """The table as [rows, channels] in fp64. Raises ValueError for what is none."""
    if isinstance(table, torch.Tensor):
        table = table.detach().cpu()
        table = (table.double() if table.dtype.is_floating_point else table).numpy()
    numbers = np.asarray(table)
    if numbers.dtype.kind not in "fiub":
        raise ValueError(f"table: expected real numbers, got an array of {numbers.dtype}")
    if numbers.size == 0:
        raise ValueError(f"table: there are no numbers in the shape {list(numbers.shape)}")
    shape = numbers.shape
    if numbers.ndim > 2:
        numbers = numbers.reshape([n for n in shape if n > 1] or [1])
    if numbers.ndim != 2:
        raise ValueError(f"table: expected [rows, channels], got the shape {list(shape)}")
    if min(numbers.shape) > MOST_CHANNELS or max(numbers.shape) > MOST_ROWS or numbers.size > MOST_NUMBERS:
        raise ValueError(
            f"table: {numbers.shape[0]} × {numbers.shape[1]} is too large; up to {MOST_ROWS} rows, {MOST_CHANNELS} "
            f"channels and {MOST_NUMBERS} numbers are read"
        )
    if numbers.shape[0] < 2:
        raise ValueError("table: one row does not tell how the next differs; give at least two")
    return np.ascontiguousarray(numbers, dtype=np.float64)


def _dtype(numbers: np.ndarray) -> Rounded:
    known = torch.from_numpy(numbers[np.isfinite(numbers)])
    narrow: tuple[Rounded, ...] = ("bfloat16", "float16", "float32")
    return next((name for name in narrow if torch.equal(known.to(getattr(torch, name)).double(), known)), "float64")


def _as(numbers: np.ndarray, dtype: Rounded, transposed: bool) -> Recognised | None:
    silent = tuple(np.flatnonzero(~numbers.any(1)).tolist())
    start = max((row + 1 for row in silent if row < 16), default=0)
    at = np.arange(start, len(numbers), dtype=np.float64)
    shown = numbers[start:]
    if len(shown) < 2 or numbers.shape[1] < 2:
        return None
    size = float(np.abs(shown).max())
    near = fits(shown, at, ROUNDING[dtype] * size + 3e-16 * (len(at) + LARGEST_OFFSET))
    for fit in near[:3]:
        if result := _checked(numbers, _plainer(shown, at, fit.formula, dtype), dtype, transposed, silent):
            return result
    return None


def _plainer(numbers: np.ndarray, rows: np.ndarray, formula: Formula, dtype: Rounded) -> Formula:
    """The formula with a base of one digit, if a known error then explains the table as well."""
    plain = replace(formula, base=float(f"{formula.base:.0e}"))
    if plain.base == formula.base or abs(plain.base - formula.base) > 0.01 * formula.base:
        return formula
    some = spread(len(rows), SAMPLED_ROWS)
    numbers, rows = numbers[some], rows[some]
    _, off, explained = _mistake(numbers, rows, formula, dtype)
    if off <= _allowed(dtype, formula, len(rows)):
        return formula
    _, _, explained_plainly = _mistake(numbers, rows, plain, dtype)
    return plain if explained_plainly <= max(explained, ROUNDING[dtype]) else formula


def _mistake(numbers: np.ndarray, rows: np.ndarray, formula: Formula, dtype: Rounded) -> tuple[Arithmetic, float, float]:
    """The known error that explains the numbers best, and the largest difference without and with it."""
    tables = (_rounded(formula.table(rows, kind), dtype) for kind in ("exact", *MISTAKES))
    off = [float(np.abs(numbers - table).max()) / formula.amplitude for table in tables]
    best = min(range(len(off)), key=lambda n: off[n])
    # Of several that explain it alike, the first; and only one that explains most of it.
    first = next(n for n in range(len(off)) if off[n] <= 2 * off[best])
    return ("exact", *MISTAKES)[first if off[first] < 0.25 * off[0] else 0], off[0], off[best]


def _rounded(exact: np.ndarray, dtype: Rounded) -> np.ndarray:
    return np.asarray(torch.from_numpy(exact).to(getattr(torch, dtype)).double().numpy())


def _checked(
    numbers: np.ndarray, formula: Formula, dtype: Rounded, transposed: bool, zeros: tuple[int, ...]
) -> Recognised | None:
    """The values of the formula for the whole table, exact and with the known errors."""
    rows = np.arange(len(numbers), dtype=np.float64)
    exact = formula.table(rows)
    silent = tuple(row for row in zeros if exact[row].any())  # a table of sines has zeros at position 0
    table = _rounded(exact, dtype)
    table[list(silent)] = 0
    off = np.abs(numbers - table) / formula.amplitude
    residual, explained = float(off.max()), off
    allowed = _allowed(dtype, formula, len(rows))
    arithmetic: Arithmetic = "exact"
    if residual > allowed:
        heard = np.setdiff1d(spread(len(rows), SAMPLED_ROWS), silent)
        arithmetic, _, _ = _mistake(numbers[heard], rows[heard], formula, dtype)
        if arithmetic != "exact":
            wrong = _rounded(formula.table(rows, arithmetic), dtype)
            wrong[list(silent)] = 0
            explained = np.abs(numbers - wrong) / formula.amplitude
    if (explained > max(4 * allowed, 0.02)).mean() > 0.1:
        return None
    row, column = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
    unexplained = float(explained.max())
    return Recognised(
        formula,
        arithmetic,
        dtype,
        transposed,
        table.T if transposed else table,
        residual,
        (column, row) if transposed else (row, column),
        unexplained,
        allowed,
        silent,
        (
            *findings.of_formula(formula, arithmetic, transposed, silent, dtype),
            findings.residual(off, unexplained, arithmetic, allowed),
            findings.repeated(numbers),
        ),
        _python(formula, len(rows), dtype, transposed, silent),
    )


def _allowed(dtype: Rounded, formula: Formula, rows: int) -> float:
    """The allowed difference: one rounding, or in fp64 the rounding of the angle."""
    farthest = (rows + abs(formula.offset)) * formula.scale
    return max(2 * ROUNDING[dtype], 4e-16 * farthest)


def _turning(numbers: np.ndarray, dtype: Rounded) -> Sequence[Observation]:
    """True if the pairs rotate uniformly, at any frequencies."""
    if numbers.shape[1] % 2 or len(numbers) < 8:
        return []
    even: list[Layout] = [layout for layout in PAIRED if uneven(numbers, layout) < max(0.01, 4 * ROUNDING[dtype])]
    return [findings.other_speeds(even[0])] if even else []


def _unknown(dtype: Rounded, observations: Sequence[Observation], python: str) -> Recognised:
    return Recognised(None, "exact", dtype, False, None, None, None, None, None, (), tuple(observations), python)


def _python(formula: Formula, rows: int, dtype: Rounded, transposed: bool, silent: tuple[int, ...]) -> str:
    lines = formula.python(rows, dtype)
    if silent:
        lines += f"\nrecognised[{list(silent)}] = 0"
    return f"{lines}\nrecognised = recognised.T" if transposed else lines
