"""Fits a formula to a table: its layout, the frequency of every pair, the first position.

    pairs (sin, cos) -> points on a circle -> speeds ─► a geometric progression? ─► base, offset, scale ─► round numbers
    cosines alone    -> the base that fits the first rows best ──────────────────┘        (least squares on ever more rows)

Legend: t rows, n pairs, c channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from posenc.checking.recognition.formula import (
    COS,
    LAYOUTS,
    PAIRED,
    SIN,
    ZERO,
    Denominator,
    Formula,
    Layout,
    Odd,
    channels,
    divisor,
)

FIRST_ROWS = 256  # positions are exact that far even in bfloat16
LARGEST_OFFSET = 65536
MOST_CHANNELS = 96
MOST_FITTED_ROWS = 192
MOST_ROWS_TURNED = 1024
LEAST_BASE, LARGEST_BASE = 1.001, 1e12


@dataclass(frozen=True)
class Curve:
    """A formula before rounding of its parameters: angle = (row + offset)·scale·exp(-slope·index)."""

    index: np.ndarray
    sine: np.ndarray
    offset: float
    log_scale: float
    slope: float
    amplitude: float

    def angles(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((rows[:, None] + self.offset) * np.exp(self.log_scale - self.slope * self.index))

    def error(self, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
        angle = self.angles(rows)
        return np.asarray(table - self.amplitude * np.where(self.sine, np.sin(angle), np.cos(angle)))

    def off(self, rows: np.ndarray, table: np.ndarray) -> float:
        """The 90 % quantile of the absolute error, so that a few wrong cells do not count; on some rows of long tables."""
        some = spread(len(rows), 4 * MOST_FITTED_ROWS)
        return float(np.quantile(np.abs(self.error(rows[some], table[some])), 0.9))


def spread(count: int, most: int) -> np.ndarray:
    """At most so many indices of 0 … count-1, evenly spaced, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


@dataclass(frozen=True)
class Fit:
    formula: Formula
    off: float


@np.errstate(over="ignore", invalid="ignore")
def fits(table: np.ndarray, rows: np.ndarray, allowed: float) -> list[Fit]:
    """One formula for every layout consistent with the numbers, the best first; `allowed` is the rounding error."""
    found_fits = []
    width = table.shape[1]
    odds: tuple[Odd, ...] = ("even",) if width % 2 == 0 else ("zero", "drop") if not table[:, -1].any() else ("drop",)
    for odd in odds:
        for layout in LAYOUTS:
            start = _by_pairs if layout in PAIRED else _by_base
            if not _possible(layout, table, odd) or (curve := start(table, rows, layout, odd)) is None:
                continue
            turning = table[:, : len(curve.index)]
            fit = _rounded(layout, odd, _grown(curve, turning, rows, allowed), turning, rows, allowed)
            if not _sensible(fit):
                continue
            found_fits.append(fit)
            if fit.off <= 2 * allowed:
                return [fit]
    return sorted(found_fits, key=lambda fit: fit.off)


def _sensible(fit: Fit) -> bool:
    """Ignores floating-point warnings: least squares on data that is not sinusoidal may diverge."""
    formula = fit.formula
    speeds = bool(np.isfinite(formula.frequencies).all()) and (formula.base >= LEAST_BASE or not formula.base_seen)
    return speeds and math.isfinite(fit.off) and math.isfinite(formula.offset) and formula.amplitude > 0


def _possible(layout: Layout, table: np.ndarray, odd: Odd) -> bool:
    width: int = table.shape[1]
    if layout in PAIRED:
        return width - (odd == "zero") >= 2
    if width % 2 and layout not in ("rope_cos", "rope_sin"):
        return layout == "per_channel" and width > 2
    if layout.endswith("half"):
        return bool((table[:, : width // 2] == table[:, width // 2 :]).all())
    if layout.endswith("_interleaved"):
        return bool((table[:, 0::2] == table[:, 1::2]).all())
    return width > 1


def _points(table: np.ndarray, layout: Layout) -> np.ndarray:
    """cos + i·sin of every complete pair, rows first; for an odd width the last channel is left out."""
    index, kind = channels(layout, table.shape[1], "even")
    z = np.empty((len(table), table.shape[1] // 2), dtype=complex)
    for part, which in ((z.real, COS), (z.imag, SIN)):
        here = (kind == which) & (index < z.shape[1])
        part[:, index[here]] = table[:, here]
    return z


def _turning(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation per row and the first angle of every pair; doubling lags give more digits."""
    omega, lag = np.zeros(z.shape[1]), 1
    while lag < len(z):
        turned = np.angle((z[lag:] * z[:-lag].conj()).sum(0))
        omega = (turned + 2 * math.pi * np.round((omega * lag - turned) / (2 * math.pi))) / lag
        lag *= 2
    return omega, np.angle((z * np.exp(-1j * np.arange(len(z))[:, None] * omega)).sum(0))


def uneven(table: np.ndarray, layout: Layout) -> float:
    """The deviation of the pairs from uniform rotation at any frequencies, relative to their radius."""
    z = _points(table[:MOST_ROWS_TURNED], layout)
    omega, began = _turning(z)
    radius = np.median(np.abs(z))
    if radius == 0 or np.median(omega) <= 0:  # below 0 sines and cosines have changed places
        return math.inf
    even = radius * np.exp(1j * (np.arange(len(z))[:, None] * omega + began))
    return float(np.quantile(np.abs(even - z), 0.98) / radius)


def _by_pairs(table: np.ndarray, rows: np.ndarray, layout: Layout, odd: Odd) -> Curve | None:
    index, kind = channels(layout, table.shape[1], odd)
    index, kind = index[kind != ZERO], kind[kind != ZERO]
    head = table[:FIRST_ROWS, : len(index)]
    z = _points(head, layout)
    radius = float(np.median(np.abs(z)))
    if radius == 0 or np.quantile(np.abs(np.abs(z) - radius), 0.9) > 0.05 * radius:
        return None
    omega, began = _turning(z)
    count = len(omega)
    good = omega > 1e-9 / len(head)
    if not good[0]:
        return None
    weight = np.where(good, np.minimum(np.abs(omega) * len(head), 1), 0)
    slope = 0.0
    log_scale = math.log(omega[0])
    if good.sum() > 1:
        minus_slope, log_scale = np.polyfit(np.arange(count)[good], np.log(omega[good]), 1, w=weight[good])
        slope = -float(minus_slope)
    if abs(log_scale) < 0.05:
        log_scale = 0.0
    curve = Curve(index, kind == SIN, 0.0, float(log_scale), slope, radius)
    offset = _offset(np.exp(log_scale - slope * np.arange(count)), began) - float(rows[0])
    return replace(curve, offset=offset)


def _offset(omega: np.ndarray, began: np.ndarray) -> float:
    """The position of the first row: an integer if one gives these angles, else a real number."""
    some = spread(len(omega), 24)
    omega, began = omega[some], began[some]
    whole = np.arange(-1024, LARGEST_OFFSET + 1)
    wrong = np.zeros(len(whole))
    for speed, angle in zip(omega, began, strict=True):
        wrong += 2 - 2 * np.cos(whole * speed - angle)
    wrong /= len(omega)
    near = np.flatnonzero(wrong <= max(2 * float(wrong.min()), 1e-4))
    best = int(whole[near[np.abs(whole[near]).argmin()]])
    if wrong.min() < 0.02:
        return best
    real = 0.0
    for speed, angle in zip(omega[::-1], began[::-1], strict=True):  # from slow to fast, each a little finer
        real += math.remainder(angle - real * speed, 2 * math.pi) / speed
    return real


def _by_base(table: np.ndarray, rows: np.ndarray, layout: Layout, odd: Odd) -> Curve | None:
    """For cosines or sines alone, starting at position 0 with frequency 1: the progression that fits best."""
    index, kind = channels(layout, table.shape[1], odd)
    index, kind = index[kind != ZERO], kind[kind != ZERO]
    few = spread(len(index), 32)
    head, at = table[:8, few], rows[:8, None]
    amplitude = float(np.abs(table[:FIRST_ROWS]).max())
    most = math.log(LARGEST_BASE) / max(float(index.max()), 1)
    best, least = 0.0, math.inf
    for slope in np.linspace(0, most, 600)[1:]:
        angle = at * np.exp(-slope * index[few])
        off = float(np.abs(head - amplitude * np.where(kind[few] == SIN, np.sin(angle), np.cos(angle))).mean())
        if off < least:
            best, least = float(slope), off
    if amplitude == 0 or least > 0.1 * amplitude:
        return None
    return Curve(index, kind == SIN, 0.0, 0.0, best, amplitude)


def _grown(curve: Curve, table: np.ndarray, rows: np.ndarray, allowed: float) -> Curve:
    """Least squares on 4, 8, 16 … rows, as long as the fits agree."""
    count, free = 4, (True, True, len(np.unique(curve.index)) > 1)
    best = _fitted(curve, table[:4], rows[:4], free)
    while count < len(table):
        count = min(2 * count, len(table))
        some = spread(count, MOST_FITTED_ROWS)
        before = max(best.off(rows[: count // 2], table[: count // 2]), allowed) if count <= 1024 else allowed
        grown = _fitted(best, table[some], rows[some], free)
        if grown.off(rows[some], table[some]) > 3 * before:
            break
        best = grown
    return best


def _fitted(curve: Curve, table: np.ndarray, rows: np.ndarray, free: tuple[bool, bool, bool]) -> Curve:
    """Gauss-Newton in the free ones of offset, log scale and slope, with the best amplitude. Never increases the error."""
    some = spread(table.shape[1], MOST_CHANNELS)
    small = replace(curve, index=curve.index[some], sine=curve.sine[some])
    table = table[:, some]
    best, least = small, small.off(rows, table)
    for _ in range(6):
        angle = small.angles(rows)
        sin, cos = np.sin(angle), np.cos(angle)
        wave, slope = np.where(small.sine, sin, cos), np.where(small.sine, cos, -sin)
        error = table - small.amplitude * wave
        kept = np.abs(error) <= 8 * np.quantile(np.abs(error), 0.9) + 1e-300
        speed = np.exp(small.log_scale - small.slope * small.index)
        moves = [slope * speed, slope * angle, -slope * angle * small.index]
        columns = [small.amplitude * move for move, is_free in zip(moves, free, strict=True) if is_free] + [wave]
        matrix = np.stack([np.broadcast_to(column, table.shape)[kept] for column in columns], axis=1)
        if not np.isfinite(matrix).all():
            break
        size = np.linalg.norm(matrix, axis=0)
        size[size == 0] = 1
        step = np.linalg.lstsq(matrix / size, error[kept], rcond=1e-11)[0] / size
        full = np.zeros(3)
        full[np.array(free)] = step[:-1]
        small = replace(
            small,
            offset=small.offset + full[0],
            log_scale=small.log_scale + full[1],
            slope=small.slope + full[2],
            amplitude=small.amplitude + step[-1],
        )
        if not (np.isfinite(full).all() and abs(small.log_scale) < 30 and abs(small.slope) < 60):
            break
        now = small.off(rows, table)
        if now < least:
            best, least = small, now
    return replace(curve, offset=best.offset, log_scale=best.log_scale, slope=best.slope, amplitude=best.amplitude)


def _rounded(layout: Layout, odd: Odd, curve: Curve, table: np.ndarray, rows: np.ndarray, allowed: float) -> Fit:
    """Rounds the parameters where the table allows it: scale 1, an integer offset, a base of few digits."""
    turning = len(np.unique(curve.index)) > 1
    width = table.shape[1] + (odd == "zero")
    count = len(rows)
    while count > 8 and curve.off(rows[:count], table[:count]) > 3 * max(
        curve.off(rows[: count // 2], table[: count // 2]), allowed
    ):
        count //= 2
    some = spread(count, MOST_FITTED_ROWS)
    few, at = table[some], rows[some]
    near = max(1.15 * curve.off(at, few), 1.05 * allowed)

    def tried(start: Curve, *free: bool) -> Curve | None:
        fitted = _fitted(start, few, at, free)  # type: ignore[arg-type]
        return fitted if fitted.off(at, few) <= near else None

    curve = tried(replace(curve, log_scale=0.0), True, False, turning) or curve
    moves = curve.log_scale != 0
    curve = tried(replace(curve, offset=float(round(curve.offset))), False, moves, turning) or curve
    kinds: tuple[Denominator, ...] = (
        ("d/2", "d") if layout == "per_channel" else ("d/2", "d/2-1") if layout in PAIRED else ("d/2",)
    )
    choices: list[tuple[tuple[bool, int, int], float, Denominator, Curve]] = []
    for order, kind in enumerate(kinds):
        by = divisor(layout, width, odd, kind)
        exact = math.exp(min(curve.slope * by, 80))
        for digits in range(1, 4 if order else 11):  # the rarer denominator must give a rounder base
            base = float(f"{exact:.{digits - 1}e}")
            if base > 1 and (fitted := tried(replace(curve, slope=math.log(base) / by), False, moves, False)):
                choices.append(((base != 10000, digits, order), base, kind, fitted))
                break
    base, denominator = 10000.0, kinds[0]
    if turning and choices:
        _, base, denominator, curve = min(choices, key=lambda choice: choice[0])
    elif turning:
        base = math.exp(min(curve.slope * divisor(layout, width, odd, denominator), 80))
    offset = int(curve.offset) if curve.offset == round(curve.offset) else float(curve.offset)
    formula = Formula(
        layout,
        width,
        base,
        denominator,
        offset,
        math.exp(curve.log_scale),
        _plain_amplitude(curve.amplitude, width, near),
        odd,
        turning,
    )
    return Fit(formula, curve.off(rows, table))


def _plain_amplitude(amplitude: float, width: int, near: float) -> float:
    """1, √d, 1/√d, √(2/d) (rows of length 1), or a number of few digits, if it fits as well."""
    for plain in (1.0, math.sqrt(width), 1 / math.sqrt(width), math.sqrt(2 / width)):
        if abs(amplitude - plain) <= max(2 * near, 1e-9 * plain):
            return plain
    for digits in range(1, 7):
        if abs(amplitude - (plain := float(f"{amplitude:.{digits - 1}e}"))) <= 2 * near:
            return plain
    return amplitude
