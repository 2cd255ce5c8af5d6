"""All thresholds of the lab, with their reasons: when a task is learnt, when a score is kept, when it is broken.

learnt      bits: within GATE of the best encoding at the trained length, and below a model without context;
            exact match: at least LEARNT. Both are means over seeds. Encodings that did not learn are not scored further.
kept        the loss against the trained length is at most FLAT
behaviour   flat, fades or breaks, by the loss at the longest length
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from posenc.bilingual import Words

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.shapes import Bool, Float

Measure = Literal["bits", "exact"]
Behaviour = Literal["flat", "fades", "breaks"]

# Bits. Transformer-XL leads by so much at small budgets that 0.4 would exclude encodings that plainly use their context.
GATE = 0.6
# Exact match. Few examples are wrong at the trained length, so that errors at longer lengths come from the length.
LEARNT = 0.95
# Bits lost at most: 0.05 multiply the perplexity by 1.04. For exact match, the share of the trained length's score kept.
FLAT = {"bits": 0.05, "exact": 0.9}
# Bits lost at least: 0.5 multiply the perplexity by 1.41. For exact match, less than half of the score is kept.
BREAKS = {"bits": 0.5, "exact": 0.5}
# Seeds. An interval over fewer than five would mostly describe the seeds that happened to be drawn.
ENOUGH = 5
# Exact match. Where the best encoding is right in fewer rows than this, none is recommended.
RECOMMENDED = 0.5
# Scores are stored in single precision, where 2.35 - 2.30 is a little more than 0.05.
ROUNDING = 1e-6

NOT_LEARNT = "not learnt at this budget"
MISSING = "missing"

RULES = {
    "bits": Words(
        f"within {GATE:g} bits of the best encoding at the trained length, mean over seeds",
        f"在训练长度上，各种子平均与最好的编码相差不超过 {GATE:g} 比特",
    ),
    "baseline": Words(
        ", and better than {baseline:.2f} bits, which needs no context", "，并优于无需上文即可达到的 {baseline:.2f} 比特"
    ),
    "exact": Words(
        f"at least {LEARNT:g} of the examples all right at the trained length, mean over seeds",
        f"在训练长度上，各种子平均至少 {LEARNT:g} 的样例完全正确",
    ),
}


class Gate(NamedTuple):
    """The best encoding at the trained length, and the score at which an encoding counts as having learnt it.

    Both are None if no encoding has a score.
    """

    measure: Measure
    best: str | None
    limit: float | None
    rule: Words

    def passes(self, mean: float | None) -> bool:
        if mean is None or self.limit is None:
            return False
        return worse(self.measure, mean) <= worse(self.measure, self.limit) + ROUNDING


def gate(measure: Measure, home: Mapping[str, float], baseline: float | None) -> Gate:
    """`home` are mean scores at the trained length by encoding, `baseline` the bits of a model without context."""
    best = min(home, key=lambda name: worse(measure, home[name]), default=None)
    if measure == "exact":
        return Gate(measure, best, LEARNT, RULES["exact"])
    rule, limit = RULES["bits"], None if best is None else home[best] + GATE
    if baseline is not None:
        limit = None if limit is None else min(limit, baseline)
        rule = Words(*(start + end.format(baseline=baseline) for start, end in zip(rule, RULES["baseline"], strict=True)))
    return Gate(measure, best, limit, rule)


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
    """From the scores at the trained and at the longest length."""
    if kept(measure, np.array([home, far]))[1]:
        return "flat"
    broken = far - home >= BREAKS["bits"] - ROUNDING if measure == "bits" else far < BREAKS["exact"] * home
    return "breaks" if broken else "fades"
