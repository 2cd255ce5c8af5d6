"""Statistics over seeds, documents and lengths, the same for every encoding.

mean        Σ w·v / Σ w over the items of a seed, w the number of targets; then the plain mean over seeds
interval    the middle 95 % of bootstrap draws of seeds and documents; all seeds share a draw of documents. Of five normal
            seeds it covers the true mean in 84 % of cases (simulated), not in 95 %
factor      the largest L / L_train such that `criteria.kept` holds at L and at every scored length below it
area        ∫ score d(log₂ L) / (log₂ L_max − log₂ L_train), by the trapezoidal rule
paired      p is the level at which d² = t²(S - 1) · s²(seeds) / S + t²(I - 1) · s²(rows) / I, with the two-sided critical
            values of Student's t (Banerjee 1960). Of pairs that do not differ at most a share p is told apart at p,
            whatever the variances; by seed alone it would be up to 31 % at 5 %: all seeds are scored on the same rows
detectable  the smallest true difference that the paired test at 5 % finds with a chance of 80 %
rank        1 is best, ties share their average; over the seeds and lengths at which every encoding has a score

Legend: n lengths, s seeds, i items (documents or examples), draws of the bootstrap; S seeds and I rows of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit
from scipy.stats import nct, rankdata, t

from posenc.lab.findings.criteria import Measure, kept

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.support.shapes import Bool, Float

LEVEL = 0.95
DRAWS = 4000
POWER = 0.8
SMALLEST = 1e-12  # p of a test, below which its tails are not computed


class Paired(NamedTuple):
    """Differences of a pair of scores: by seed, each the mean over rows, and by row, each the mean over seeds.

    Without rows, which some records lack, the test is by seed alone. One score in the place of a difference has an interval
    by the same rule.
    """

    seeds: Sequence[float]
    rows: Sequence[float] = ()

    @property
    def mean(self) -> float:
        return math.fsum(self.seeds) / len(self.seeds)

    @property
    def parts(self) -> list[tuple[float, int]]:
        """The variance of the mean over seeds, and of that over rows, with their degrees of freedom."""
        return [(variance(each), len(each) - 1) for each in (self.seeds, self.rows) if len(each) > 1]

    @property
    def p(self) -> float:
        """Two-sided, that the mean is 0; 1 with fewer than two seeds. At least SMALLEST, where the mean varies."""
        parts = self.parts
        if len(self.seeds) < 2 or not self.mean or not any(part for part, _ in parts):
            return float(len(self.seeds) < 2 or not self.mean)

        def behind(log_p: float) -> float:
            return combined(parts, lambda degrees: -stdtrit(degrees, math.exp(log_p) / 2)) - abs(self.mean)

        return SMALLEST if behind(math.log(SMALLEST)) < 0 else math.exp(brentq(behind, math.log(SMALLEST), 0))

    @property
    def half_width(self) -> float | None:
        """Half the width of the 95 % interval of the mean; None with fewer than two seeds."""
        return None if len(self.seeds) < 2 else combined(self.parts, lambda degrees: stdtrit(degrees, (1 + LEVEL) / 2))


def variance(scores: Sequence[float]) -> float:
    """Of the mean of these scores."""
    return float(np.var(scores, ddof=1)) / len(scores)


def combined(parts: Sequence[tuple[float, int]], times: Callable[[int], float]) -> float:
    """√(Σ times(degrees of freedom)² · variance)."""
    return math.sqrt(math.fsum(times(degrees) ** 2 * part for part, degrees in parts))


def pseudo_values(values: Float[Array, "i"], weights: Float[Array, "i"]) -> Float[Array, "i"]:
    """A number for each row, whose spread is that of the weighted mean (jackknife): its value where weights are equal."""
    mean = (values * weights).sum() / weights.sum()
    numbers: Float[Array, "i"] = mean + (len(values) - 1) * weights * (values - mean) / (weights.sum() - weights)
    return numbers


def arranged(
    items: Mapping[str, Array], groups: Sequence[Bool[Array, "rows"]], seeds: Sequence[int] | Array, numbers: Array
) -> tuple[Float[Array, "n s i"], Float[Array, "n s i"]]:
    """Values and weights of the groups of items, by these seeds and numbers; what is not there has the weight 0."""
    values, weights = np.zeros((2, len(groups), len(seeds), len(numbers)))
    for n, group in enumerate(groups):
        where = group & np.isin(items["seed"], seeds)
        at = n, np.searchsorted(seeds, items["seed"][where]), np.searchsorted(numbers, items["item"][where])
        values[at], weights[at] = items["value"][where], items["weight"][where]
    return values, weights


def bootstrap(values: Float[Array, "n s i"], weights: Float[Array, "n s i"], seed: int = 0) -> Float[Array, "draws n"]:
    """Bootstrap draws of the mean over other seeds and other documents.

    A draw uses the same seeds and documents at every length, so that differences between lengths are paired.
    """
    documents, seeds = _counts(values.shape[2], values.shape[1], seed)
    # [draws, i] @ [n, i, s]: sums over the drawn documents, for every seed
    sums = documents @ np.swapaxes(values * weights, 1, 2)
    totals = documents @ np.swapaxes(weights, 1, 2)
    of_seeds = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
    drawn: Float[Array, "draws n"] = (of_seeds * seeds).sum(-1).T / values.shape[1]
    return drawn


@lru_cache(maxsize=8)
def _counts(items: int, seeds: int, seed: int) -> tuple[Array, Array]:
    """How often every document and every seed is drawn, [draws, items] and [draws, seeds]."""
    random = np.random.default_rng(seed)
    return (
        random.multinomial(items, np.full(items, 1 / items), DRAWS).astype(float),
        random.multinomial(seeds, np.full(seeds, 1 / seeds), DRAWS).astype(float),
    )


def interval(drawn: Float[Array, "draws"]) -> tuple[float, float]:
    """The middle 95 % of the draws."""
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def wilson(right: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of `of` examples (Wilson 1927).

    The examples of all seeds are pooled as independent. Differences between seeds are ignored, so the interval is too
    narrow where seeds differ.
    """
    z = float(ndtri((1 + LEVEL) / 2))
    share = right / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    down = 1 + z * z / of
    return max(0.0, (middle - half) / down), min(1.0, (middle + half) / down)


def factors(measure: Measure, means: Float[Array, "... n"], lengths: Sequence[int]) -> Float[Array, "..."]:
    """The length factor of every curve; `lengths` ascend from the trained one."""
    unbroken = np.logical_and.accumulate(kept(measure, means), axis=-1).sum(-1)
    ratios: Float[Array, "..."] = (np.asarray(lengths) / lengths[0])[unbroken - 1]
    return ratios


def factor_interval(drawn: Float[Array, "draws"]) -> tuple[float, float]:
    """The 95 % interval of factors. Its ends are drawn values, since a factor is one of the scored lengths."""
    low = np.quantile(drawn, (1 - LEVEL) / 2, method="lower")
    high = np.quantile(drawn, (1 + LEVEL) / 2, method="higher")
    return float(low), float(high)


def area(lengths: Sequence[int], means: Sequence[float]) -> float | None:
    """The mean score over log₂ length; None for a single length."""
    if len(lengths) < 2:
        return None
    at = np.log2(np.asarray(lengths, float))
    return float(np.trapezoid(np.asarray(means, float), at) / (at[-1] - at[0]))


def detectable(pairs: Sequence[Paired]) -> float | None:
    """√(δ²(S - 1) · s²(seeds) / S + δ²(I - 1) · s²(rows) / I); None without a pair of two seeds.

    δ(n) is the noncentrality of Student's t with n degrees of freedom that has a power of 80 % at 5 %: 5.65 with three
    seeds, 3.80 with five. Variances are means over the pairs, of equally many seeds and rows. Not corrected for the number
    of pairs.
    """
    parts = [pair.parts for pair in pairs if len(pair.seeds) > 1]
    if not parts:
        return None
    means = [(float(np.mean([part for part, _ in of])), of[0][1]) for of in zip(*parts, strict=True)]
    return combined(means, _noncentrality)


@cache
def _noncentrality(degrees: int) -> float:
    beyond = t.ppf((1 + LEVEL) / 2, degrees)
    shift: float = brentq(lambda shift: nct.sf(beyond, degrees, shift) - POWER, 0, 10 * beyond)
    return shift


def mean_ranks(measure: Measure, blocks: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float] | None:
    """Mean rank by name, over the blocks in which every name has a score; None without such a block."""
    complete = np.array([[block[name] for name in names] for block in blocks if block.keys() >= set(names)])
    if not complete.size:
        return None
    ranks = rankdata(complete if measure == "bits" else -complete, method="average", axis=1).mean(0)
    return dict(zip(names, ranks.tolist(), strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for m tests (Holm 1979): the i-th smallest times m - i + 1, at least the one before it."""
    corrected, least = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected
