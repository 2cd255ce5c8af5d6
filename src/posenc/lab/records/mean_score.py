"""The mean of a trial's scores: bits weighted by their targets, exact match by rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

EACH = "CASE kind WHEN 'exact' THEN 1 ELSE weight END"
"""SQL: how much a row of bits, right or exact counts in a mean."""


def mean_score(rows: pa.Table, kind: str, mode: str, length: int, change: str = "") -> float:
    """The mean of `kind`, "bits" or "exact", in one mode at one length after one change; infinite without rows."""
    of = pc.and_(pc.equal(rows["kind"].cast("string"), kind), pc.equal(rows["length"], length))
    of = pc.and_(of, pc.equal(rows["mode"].cast("string"), mode))
    of = pc.and_(of, pc.equal(rows["change"].cast("string").fill_null(""), change))
    found = rows.filter(of)
    weights = found["weight"].to_numpy().astype("float64") if kind == "bits" else None
    values = found["value"].to_numpy().astype("float64")
    return float(np.average(values, weights=weights)) if len(values) else math.inf
