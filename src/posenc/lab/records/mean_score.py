"""The mean of a trial's scores: bits weighted by their targets, exact match by rows; and which of two trials is better."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from posenc.lab import tasks
from posenc.lab.records.record import RANDOM_POSITIONS, SAME_TARGETS

if TYPE_CHECKING:
    import pyarrow as pa

    from posenc.lab.records.record import Record

Order = tuple[float, float]
NO_SCORE: Order = (math.inf, math.inf)
"""The order of a training that stopped early."""
EACH = "CASE kind WHEN 'exact' THEN 1 ELSE weight END"
"""SQL: how much a row of bits, right or exact counts in a mean."""


def mean_score(rows: pa.Table, kind: str, mode: str, length: int, change: str = "") -> float:
    """The mean of `kind`, "bits" or "exact", in one mode at one length after one change; infinite without rows."""
    of = pc.and_(pc.equal(rows["kind"].cast("string"), kind), pc.equal(rows["length"], length))
    of = pc.and_(of, pc.equal(rows["mode"].cast("string"), mode))
    of = pc.and_(of, pc.equal(rows["change"].cast("string").fill_null(""), change))
    chosen = rows.filter(of)
    weights = chosen["weight"].to_numpy().astype("float64") if kind == "bits" else None
    values = chosen["value"].to_numpy().astype("float64")
    return float(np.average(values, weights=weights)) if len(values) else math.inf


def order_of(record: Record) -> Order:
    """What trials of one task are ordered by, the best first: bits at the trained length, or right rows and then bits.

    (bits, 0), or (-share of rows that are all right, bits): where no row is right yet, bits decide.
    """
    if record.about["failed"] is not None:
        return NO_SCORE
    trial = record.about["trial"]
    mode = RANDOM_POSITIONS if trial.get("draws") else SAME_TARGETS
    bits, exact = (mean_score(record.rows, kind, mode, trial["task"]["length"]) for kind in ("bits", "exact"))
    return (bits, 0.0) if tasks.class_of(trial["task"]).measure == "bits" else (-exact, bits)
