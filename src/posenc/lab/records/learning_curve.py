"""What the training loss of a trial says: whether it diverged, and whether it still fell at its end.

    slope of the last fifth   bits that a straight line through the points of the last fifth of the steps falls within it;
                              of the steps of the last phase, where a warmup of its own begins within training

A curve is pairs of step and loss: the mean training loss, in bits, since the point before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Curve = Sequence[tuple[int, float]]
LAST = 0.2  # share of the steps
FEWEST = 10  # points that can show that the loss rose; a training of 10 steps or more has as many
RISEN = 1.0  # bits; a few steps differ by less because their rows differ


def of(rows: pa.Table) -> list[tuple[int, float]]:
    """The curve in the rows of a record."""
    curve = rows.filter(pc.equal(rows["kind"].cast("string"), "curve")).sort_by("step")
    return list(zip(curve["step"].to_pylist(), curve["value"].to_pylist(), strict=True))


def after(rows: pa.Table, change: str) -> list[tuple[int, float]]:
    """The curve of the training after a change; empty in records that do not hold it."""
    curve = rows.filter(
        pc.and_(pc.equal(rows["kind"].cast("string"), "then"), pc.equal(rows["change"].cast("string"), change))
    )
    return list(zip(*(curve.sort_by("step")[name].to_pylist() for name in ("step", "value")), strict=True))


def diverged(curve: Curve) -> str | None:
    """The reason why a training counts as diverged: its last loss is more than a bit above its first.

    None otherwise, and for a training of a few steps, whose losses differ by their rows.
    """
    if len(curve) < FEWEST or curve[-1][1] <= curve[0][1] + RISEN:
        return None
    (first, before), (last, after) = curve[0], curve[-1]
    return f"the loss rose from {before:.3g} bits up to step {first} to {after:.3g} bits up to step {last}"


def slope(curve: Curve, start: int = 0) -> float | None:
    """Bits by which the loss fell within the last fifth of the phase from step `start` to the end; negative if it rose.

    A point is the mean over the steps since the point before, so it stands in their middle. None with fewer than three
    points in the last fifth. A phase that begins later is short: all points that lie wholly in it count, if there are two.
    """
    if not curve:
        return None
    end, begins = curve[-1][0], [0, *(step for step, _ in curve)]
    points = [((begin + step) / 2, loss) for begin, (step, loss) in zip(begins, curve, strict=False) if begin >= start]
    last = [point for point in points if point[0] >= end - LAST * (end - start)]
    if len(last) < 3:
        last = points if start and len(points) > 1 else []
    if not last:
        return None
    at = np.array(last)
    per_step, _ = np.polyfit(at[:, 0], at[:, 1], 1)
    return float(-per_step * LAST * (end - start))
