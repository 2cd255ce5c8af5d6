"""Repeats one trial and compares its scores with the stored ones.

    record ─► the same trial, run again ─► every score beside the stored one ─► within the tolerance?

The same code on the same kind of processor and version of torch often gives the same bits. Elsewhere sums round differently
and training amplifies that, so scores are compared to a stated tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from posenc.lab.findings.criteria import FLAT
from posenc.lab.records.mean_score import mean_score

if TYPE_CHECKING:
    import pyarrow as pa

    from posenc.lab.records.record import Record

# Bits: what counts as no loss (criteria.FLAT). Exact match: one row in ten. Twelve trials of results/standard were repeated
# on another machine: ten were within these at every length, and two exact tasks were learnt there to another degree.
TOLERANCE: Mapping[str, float] = {"bits": FLAT["bits"], "exact": 0.1}
Where = tuple[str, str, int]


class Score(NamedTuple):
    """A score of the stored record and of the repeated trial. `change` is a change after training, "" for none."""

    mode: str
    change: str
    length: int
    stored: float
    again: float

    @property
    def difference(self) -> float:
        return self.again - self.stored

    def within(self, tolerance: float) -> bool:
        """False for NaN too."""
        return abs(self.difference) <= tolerance


def paired_scores(stored: Record, again: Record, measure: str) -> list[Score]:
    """Every score that either record has, in the order of modes, changes and lengths; NaN where one of them has none."""
    before, after = (means(record.rows, measure) for record in (stored, again))
    nothing = float("nan")
    return [
        Score(*where, before.get(where, nothing), after.get(where, nothing))
        for where in sorted(before.keys() | after.keys())
    ]


def means(rows: pa.Table, measure: str) -> dict[Where, float]:
    """Mean score by mode, change and length."""
    of_measure = rows.filter(pc.equal(rows["kind"].cast("string"), measure))
    scored = of_measure.select(["mode", "change", "length"]).to_pylist()
    every = {(row["mode"], row["change"] or "", row["length"]) for row in scored}
    return {(mode, change, length): mean_score(rows, measure, mode, length, change) for mode, change, length in every}
