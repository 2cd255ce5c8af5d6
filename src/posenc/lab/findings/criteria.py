"""All thresholds of the lab, with their reasons: when a task is learnt, when a score is kept, when it is broken.

learnt      bits: at least MARGIN below the task's baseline, a model that sees only the byte before (causal), no context
            (masked) or no order (chains); exact match: at least LEARNT. Both are means over seeds at the trained length.
            All numbers of an encoding that did not learn are shown; it is not ranked.
converged   in the last fifth of the steps, mean over seeds, the training loss fell by at most CONVERGED bits; and so moved
            the loss at the longest length, where it was recorded and has not broken. Encodings that still improved are
            marked and not ranked. Where positions are dropped, only the steps from there on count.
kept        the loss against the trained length is at most FLAT
behaviour   flat, fades or breaks, by the loss at the longest length
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from posenc.lab.say import say
from posenc.support.languages import Words

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.support.shapes import Bool, Float

Measure = Literal["bits", "exact"]
Behaviour = Literal["flat", "fades", "breaks"]

# Bits. 0.4 divide the perplexity by 1.32. Fixed before the results of posenc 0.2, and independent of the other encodings.
MARGIN = 0.4
# Bits. As much as FLAT: training that still gains what counts as a loss at longer lengths is not finished.
CONVERGED = 0.05
# Exact match. Few examples are wrong at the trained length, so that errors at longer lengths come from the length.
LEARNT = 0.95
# Bits lost at most: 0.05 multiply the perplexity by 1.04. For exact match, the share of the trained length's score kept.
FLAT = {"bits": 0.05, "exact": 0.9}
# What a repeated trial may differ by: what counts as no loss, and one row in ten.
TOLERANCE = {"bits": FLAT["bits"], "exact": 0.1}
# Bits lost at least: 0.5 multiply the perplexity by 1.41. For exact match, less than half of the score is kept.
BREAKS = {"bits": 0.5, "exact": 0.5}
# Seeds. An interval over fewer than five would mostly describe the seeds that happened to be drawn.
ENOUGH = 5
# Seeds that an order needs. With two, the interval of a mean difference is as wide as 12.7 standard deviations over √2.
FEWEST = 3
# Share of what the optimum gains from far context. A measure that gives more to the optimum cut to the trained length,
# which sees no far context, is refused.
CUT_AT_MOST = 0.05
# Exact match. Where the best encoding is right in fewer rows than this, none is recommended.
RECOMMENDED = 0.5
# Multiples of the trained length at which Press et al. (ALiBi) score windows that do not overlap.
PRESS = (1.0, 1.4, 2.0, 4.9, 6.9)
# Scores are stored in single precision, where 2.35 - 2.30 is a little more than 0.05.
ROUNDING = 1e-6

NOT_LEARNT = "not learnt at this budget"
MISSING = "missing"

RULES = {
    "bits": say(
        "at least {margin:g} bits better at the trained length than a model that {{sees}} "
        "({{baseline:.2f}} bits), mean over seeds",
        margin=MARGIN,
    ),
    "exact": say("at least {learnt:g} of the examples all right at the trained length, mean over seeds", learnt=LEARNT),
}


class Gate(NamedTuple):
    """The best encoding at the trained length, None if none has a score; and the score from which on it is learnt."""

    measure: Measure
    best: str | None
    limit: float | None
    rule: Words

    def passes(self, mean: float | None) -> bool:
        if mean is None or self.limit is None:
            return False
        return worse(self.measure, mean) <= worse(self.measure, self.limit) + ROUNDING


def gate(measure: Measure, home: Mapping[str, float], baseline: float | None, sees: Words) -> Gate:
    """`home` are mean scores at the trained length by encoding, `baseline` the bits of a model that `sees` describes.

    Without a baseline, as before the first trial, nothing has learnt in bits.
    """
    best = min(home, key=lambda name: worse(measure, home[name]), default=None)
    if measure == "exact":
        return Gate(measure, best, LEARNT, RULES["exact"])
    limit = None if baseline is None else baseline - MARGIN
    bits = math.nan if baseline is None else baseline
    rule = RULES["bits"].filled(baseline=bits, sees=sees)
    return Gate(measure, best, limit, rule)


def converged(slopes: Sequence[float]) -> bool | None:
    """Whether the mean of the slopes of the last fifth, one for each seed, is small; None without slopes."""
    return sum(slopes) / len(slopes) <= CONVERGED + ROUNDING if slopes else None


def settled(changes: Sequence[float]) -> bool:
    """Whether the mean of the changes of the loss at the longest length, one for each seed, is small; True without any."""
    return not changes or abs(sum(changes) / len(changes)) <= CONVERGED + ROUNDING


def worse(measure: Measure, score: float) -> float:
    """A key to sort scores by, the best first."""
    return score if measure == "bits" else -score


def kept(measure: Measure, means: Float[Array, "... n"]) -> Bool[Array, "... n"]:
    """True where the loss against the first length, the trained one, is small."""
    home = means[..., :1]
    if measure == "bits":
        return np.asarray(means - home <= FLAT["bits"] + ROUNDING)
    return np.asarray(means >= FLAT["exact"] * home - ROUNDING)


def behaviour(measure: Measure, home: float, far: float) -> Behaviour:
    """The behaviour beyond the trained length, from the scores at the trained and at the longest length."""
    if kept(measure, np.array([home, far]))[1]:
        return "flat"
    broken = far - home >= BREAKS["bits"] - ROUNDING if measure == "bits" else far < BREAKS["exact"] * home
    return "breaks" if broken else "fades"
