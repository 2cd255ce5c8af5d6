"""Repeats one trial and compares its scores with the stored ones.

    record ─► the same trial, run again ─► every score beside the stored one ─► a verdict

The same code on the same processor and version of torch gives the same bits. Elsewhere sums round differently and training
amplifies that, at most as another seed would. So a score may differ by a stated tolerance, or by as much as the seeds of
its encoding differ in that score, if that is more: where a model has broken, it is.

    same bits           every number
    within tolerance    every score
    undecided           a score is beyond it, on another processor, instruction set or torch, or one that was not recorded
    fault               a score is beyond it, and all of these are the record's: rounding is no reason
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow.compute as pc

from posenc.lab.findings.criteria import FLAT
from posenc.lab.records.mean_score import mean_score

if TYPE_CHECKING:
    import pyarrow as pa

    from posenc.lab.records.record import Record
    from posenc.lab.run.verify import Rerun

# Bits: what counts as no loss (criteria.FLAT). Exact match: one row in ten.
TOLERANCE: Mapping[str, float] = {"bits": FLAT["bits"], "exact": 0.1}
Where = tuple[str, str, int]
Verdict = Literal["same bits", "within tolerance", "undecided", "fault"]
EXIT_CODES: Mapping[Verdict, int] = {"same bits": 0, "within tolerance": 0, "fault": 1, "undecided": 3}
Allowed = Callable[[Where], float]  # the largest difference of a score that counts as the same


class Score(NamedTuple):
    """A score of the stored record and of the repeated trial. `change` is a change after training, "" for none.

    allowed   the largest difference that counts as the same
    """

    mode: str
    change: str
    length: int
    stored: float
    again: float
    allowed: float

    @property
    def difference(self) -> float:
        return self.again - self.stored

    @property
    def within(self) -> bool:
        """False for NaN too."""
        return abs(self.difference) <= self.allowed


def paired_scores(stored: Record, again: Record, measure: str, allowed: Allowed) -> list[Score]:
    """Every score that either record has, in the order of modes, changes and lengths; NaN where one of them has none."""
    before, after = (means(record.rows, measure) for record in (stored, again))
    nothing = float("nan")
    return [
        Score(*where, before.get(where, nothing), after.get(where, nothing), allowed(where))
        for where in sorted(before.keys() | after.keys())
    ]


def the_same_everywhere(tolerance: float) -> Allowed:
    return lambda where: tolerance


def as_the_seeds_differ(records: Sequence[Record], measure: str) -> Allowed:
    """The measure's tolerance, or the range of these records, one a seed, in that score where it is more."""
    seeds = [means(record.rows, measure) for record in records]

    def allowed(where: Where) -> float:
        scores = [of_seed[where] for of_seed in seeds if where in of_seed]
        return max(TOLERANCE[measure], max(scores, default=0.0) - min(scores, default=0.0))

    return allowed


def means(rows: pa.Table, measure: str) -> dict[Where, float]:
    """Mean score by mode, change and length."""
    of_measure = rows.filter(pc.equal(rows["kind"].cast("string"), measure))
    scored = of_measure.select(["mode", "change", "length"]).to_pylist()
    every = {(row["mode"], row["change"] or "", row["length"]) for row in scored}
    return {(mode, change, length): mean_score(rows, measure, mode, length, change) for mode, change, length in every}


def judged(rerun: Rerun, within: bool) -> Verdict:
    """`within`: every score is within its tolerance, and both trainings ended alike."""
    if rerun.equal:
        return "same bits"
    if within:
        return "within tolerance"
    return "fault" if rerun.decided else "undecided"
