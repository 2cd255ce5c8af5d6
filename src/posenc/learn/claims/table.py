"""Claims about the sinusoidal table: its printed digits, its frequencies, its rows.

Legend: n positions, d d_model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.learn.claims.evidence import Evidence, Verdict, verdict
from posenc.learn.notes import compare
from posenc.pictures import measures
from posenc.positions import Positions
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Encode = Callable[[Tensor, int], Tensor]
BASE = 10000.0


def sinusoid(positions: Float[Tensor, "n"], d_model: int) -> Float[Tensor, "n d"]:
    """PE at the given positions, in fp64."""
    return Sinusoidal(d_model).tables(Positions.at(positions.double()[None]), torch.float64)[0][0]


def denominators(d_model: int = 8, base: float = BASE) -> Evidence:
    right = [1 / frequency for frequency in frequencies.rotary(d_model, base)]
    printed = ("1", "10", "100", "1000")
    holds = len(right) == len(printed) and all(compare(p, r) == "same" for p, r in zip(printed, right, strict=True))
    shown = ", ".join(f"{value:.6g}" for value in right)
    return Evidence(verdict(holds), {"denominators": right}, value=Words(shown))


def last_cosine(
    printed: tuple[str, ...] = ("0.9999", "0.999", "0.198", "0.598"), base: float = BASE, small_base: float = 100.0
) -> Evidence:
    """PE(2) at d = 8 and d = 4, and the sine at base 100 that note 004 adds to 0.4."""
    sine = float(sinusoidal_table(3, 4, small_base, dtype=torch.float64)[2, 2])
    right = [float(sinusoidal_table(3, d, base, dtype=torch.float64)[2, -1]) for d in (8, 4)] + [sine, 0.4 + sine]
    seen = {compare(p, r) for p, r in zip(printed, right, strict=True)}
    decided = Verdict.FALSE if "different" in seen else Verdict.TRUNCATED if "truncated" in seen else Verdict.TRUE
    rounded = ", ".join(f"{r:.{len(p) - 2}f}" for p, r in zip(printed, right, strict=True))
    return Evidence(decided, {"right": right}, {"right_shown": right[0], "rounded": rounded})


def slow_neighbours(d_model: int = 512, i: int = 256, position: int = 1000, base: float = BASE) -> Evidence:
    omega = base ** (-2 * i / d_model)
    difference = math.sin((position + 1) * omega) - math.sin(position * omega)
    last = len(frequencies.rotary(d_model, base)) - 1
    holds = compare("0.0000003", difference) == "same" and i <= last
    return Evidence(verdict(holds), {"difference": difference, "times": difference / 3e-07, "last_i": last})


def neighbours_shrink(encode: Encode = sinusoid, positions: tuple[int, ...] = (0, 10, 1000, 100_000)) -> Evidence:
    """‖PE(p+1) - PE(p)‖ for many p, at d = 8 and 512."""
    at = torch.tensor(positions, dtype=torch.float64)
    distances = {d: (encode(at + 1, d) - encode(at, d)).norm(dim=1).tolist() for d in (8, 512)}
    shrink = all(a > b + 1e-9 for row in distances.values() for a, b in itertools.pairwise(row))
    eight, many = distances[8][-1], distances[512][-1]
    spread = max(max(row) - min(row) for row in distances.values())
    return Evidence(
        verdict(shrink),
        {"positions": positions, "d=8": distances[8], "d=512": distances[512]},
        {"eight": eight, "many": many, "spread": spread, "positions_shown": positions[-1]},
    )


def third_component(d_model: int = 8, base: float = BASE) -> Evidence:
    printed, right = base**-2, frequencies.rotary(d_model, base)[1]
    return Evidence(verdict(math.isclose(printed, right)), {"printed": printed, "right": right}, {"d_model": d_model})


def frequencies_grow(encode: Encode = sinusoid, d_model: int = 128, length: int = 4096) -> Evidence:
    """The angle between p and p+1 in each pair, at small and at large p."""
    near, far = (_turns(encode, d_model, position) for position in (10, 100_000))
    change = float((far - near).abs().max())
    unseen = measures.unfinished_pairs(d_model, length)
    pairs = d_model // 2
    return Evidence(
        verdict(change > 1e-06), {"largest_change": change, "unfinished_pairs": unseen, "pairs": pairs}, {"length": length}
    )


def _turns(encode: Encode, d_model: int, position: int) -> Float[Tensor, "d/2"]:
    (sin, cos), (sin_next, cos_next) = (
        (row[0::2], row[1::2]) for row in encode(torch.tensor([position, position + 1]), d_model)
    )
    return torch.atan2(sin_next * cos - cos_next * sin, cos_next * cos + sin_next * sin)


def longest_wavelength(
    d_model: int = 512, base: float = BASE, spacing: Callable[[int, float], Sequence[float]] = frequencies.rotary
) -> Evidence:
    longest = 2 * math.pi / spacing(d_model, base)[-1]
    ratio = longest / (20000 * math.pi)
    decided = Verdict.TRUE if math.isclose(ratio, 1) else Verdict.LIMIT if ratio < 1 else Verdict.FALSE
    return Evidence(decided, {"longest": longest, "ratio": ratio})


def recurrence(d_model: int = 8, matrix: Tensor | None = None) -> Evidence:
    """M acts on columns; the error is ‖M PE(0) + PE(1) - PE(1)‖."""
    shift = measures.shift_matrix(1, d_model)
    zero, at_one = sinusoid(torch.arange(2), d_model)
    exact = float((shift @ zero - at_one).norm())
    claimed = (shift if matrix is None else matrix) @ zero + at_one
    error, times = float((claimed - at_one).norm()), float(claimed.norm() / at_one.norm())
    return Evidence(verdict(error < 1e-09), {"exact_error": exact, "claimed_error": error, "times": times})


def never_repeats(dtype: torch.dtype = torch.bfloat16, length: int = 4096, d_model: int = 512) -> Evidence:
    """With exact positions, and with positions cast to `dtype`."""
    exact = measures.uniqueness(d_model, length)
    distinct = measures.distinct_rows_of_rounded_positions(d_model, length, dtype)
    count = torch.arange(length)
    changed = (count.to(dtype).long() != count).nonzero()
    first = int(changed[0]) if len(changed) else None
    decided = Verdict.FALSE if exact.distance == 0 else Verdict.PARTLY if distinct < length else Verdict.TRUE
    name = str(dtype).removeprefix("torch.")
    return Evidence(
        decided,
        {"smallest_distance": exact.distance, "lag": exact.lag, "distinct": distinct, "first_repeat": first},
        {"d_model": d_model, "name": name, "length": length},
    )


def mean_and_variance(length: int = 512, d_model: int = 512, table: Tensor | None = None) -> Evidence:
    table = sinusoidal_table(length, d_model, dtype=torch.float64) if table is None else table
    mean, variance = float(table.mean()), float(table.var(correction=0))
    square, norm = float(table.square().mean()), float(table[0].norm())
    return Evidence(
        verdict(abs(mean) < 0.05 and abs(variance - 1) < 0.05),
        {"mean": mean, "variance": variance, "mean_square": square, "norm": norm},
    )


def same_range(d_model: int = 512, embedding_norm: float = 1.0) -> Evidence:
    norm, root = float(sinusoidal_table(1, d_model, start=7, dtype=torch.float64).norm()), d_model**0.5
    return Evidence(
        verdict(0.5 <= norm / embedding_norm <= 2), {"norm": norm, "embedding_norm": embedding_norm}, {"root": root}
    )


def decay_is_spread(d_model: int = 512, base: float = BASE) -> Evidence:
    """If there were decay, the similarity PE(p)·PE(p+k) would fall with k."""
    logarithms = [math.log2(1 / frequency) for frequency in frequencies.rotary(d_model, base)]
    powers = all(abs(log - round(log)) < 1e-9 for log in logarithms)
    rise = measures.first_rise(measures.sinusoidal_similarity(d_model, torch.arange(512), base))
    holds = powers + (rise is None)
    ratio = base ** (2 / d_model)
    decided = {0: Verdict.FALSE, 1: Verdict.PARTLY, 2: Verdict.TRUE}[holds]
    return Evidence(decided, {"ratio": ratio, "powers_of_two": powers, "first_rise": rise})


def absolute_or_relative(d_model: int = 128, length: int = 1024, dtype: torch.dtype = torch.float64) -> Evidence:
    """Relative: M_k maps every row to the row k positions later. Absolute: every row differs from all others."""
    exact = sinusoidal_table(length, d_model, dtype=torch.float64)
    table = sinusoidal_table(length, d_model, dtype=dtype).double()
    error = max(float((table[:-k] @ measures.shift_matrix(k, d_model).T - table[k:]).abs().max()) for k in (1, 7, 100))
    n_found = int((torch.cdist(table, exact).argmin(dim=1) == torch.arange(length)).sum())
    relative, absolute = error < 1e3 * torch.finfo(dtype).eps, n_found == length
    return Evidence(
        Verdict.CONTRADICTION if relative and absolute else Verdict.PARTLY if relative or absolute else Verdict.FALSE,
        {"shift_error": error, "positions_found": n_found, "of": length},
    )


def right_half(d_model: int = 128, base: float = BASE, first: int = 0, second: int = 50) -> Evidence:
    rows = (sinusoidal_table(1, d_model, base, start=p, dtype=torch.float64)[0, d_model // 2 :] for p in (first, second))
    gaps = (next(rows) - next(rows)).abs()
    small, columns, last = int((gaps < 0.1).sum()), len(gaps), float(gaps[-1])
    return Evidence(verdict(small <= columns / 2), {"below_0.1": small, "columns": columns, "last": last}, {"small": small})


def addition_theorem(d_model: int = 8, base: float = BASE, position: int = 5, k: int = 3) -> Evidence:
    """Rotates every pair by k, as printed, and by ω·k."""
    table = sinusoidal_table(k + 1, d_model, base, start=position, dtype=torch.float64)
    sin, cos, moved = table[0, 0::2], table[0, 1::2], table[k, 0::2]
    angle = k * torch.tensor(frequencies.rotary(d_model, base), dtype=torch.float64)
    printed = (sin * math.cos(k) + cos * math.sin(k) - moved).abs()
    right = float((sin * angle.cos() + cos * angle.sin() - moved).abs().max())
    holds, pairs, worst = int((printed < 1e-12).sum()), len(printed), float(printed.max())
    return Evidence(
        Verdict.TRUE if holds == pairs else Verdict.PARTLY if holds else Verdict.FALSE,
        {"pairs_that_hold": holds, "pairs": pairs, "largest_error": worst, "error_with_omega": right},
    )


def index_range(d_model: int = 512) -> Evidence:
    last = len(frequencies.rotary(d_model)) - 1
    return Evidence(verdict(last == d_model // 2), {"last_i": last})


def orthogonal_columns(length: int = 512, d_model: int = 512) -> Evidence:
    """The largest cosine of the angle between the two columns of a pair, and between any two."""
    columns = torch.nn.functional.normalize(sinusoidal_table(length, d_model, dtype=torch.float64), dim=0)
    cosines = (columns.T @ columns).fill_diagonal_(0).abs()
    pair, largest = float(cosines.diagonal(1)[0::2].max()), float(cosines.max())
    return Evidence(
        verdict(largest < 0.01), {"largest_within_a_pair": pair, "largest": largest}, {"length": length, "d_model": d_model}
    )


def shift_is_learned(encode: Encode = sinusoid, d_model: int = 8) -> Evidence:
    """One matrix, computed without training, shifts every position."""
    at = torch.tensor([0, 10, 1_000_000], dtype=torch.float64)
    errors = (encode(at, d_model) @ measures.shift_matrix(1, d_model).T - encode(at + 1, d_model)).abs().amax(dim=1)
    error = float(errors.max())
    return Evidence(verdict(error > 1e-09), {"errors": errors.tolist()}, {"errors_shown": float(errors[1]), "error": error})


def column_is_index(column: int = 64, d_model: int = 128) -> Evidence:
    """Finds the pair whose sine the column holds by comparing it with all pairs."""
    at = torch.arange(512)
    waves = (at[:, None] * torch.tensor(frequencies.rotary(d_model), dtype=torch.float64)).sin()
    pair = int((waves - sinusoid(at, d_model)[:, column : column + 1]).abs().amax(dim=0).argmin())
    omega, last = frequencies.rotary(d_model)[pair], d_model // 2 - 1
    return Evidence(verdict(pair == column), {"pair": pair, "frequency": omega}, {"last": last})
