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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from posenc.lab.engines.engine import Context
from posenc.lab.engines.local import Local
from posenc.lab.experiment import Trial
from posenc.lab.findings.criteria import TOLERANCE
from posenc.lab.records import surroundings
from posenc.lab.records.mean_score import mean_score
from posenc.lab.records.provenance import provenance
from posenc.lab.records.record import Record
from posenc.lab.records.results import unpacked

if TYPE_CHECKING:
    from posenc.lab.engines.engine import Train
    from posenc.lab.records.surroundings import Surrounding
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

Where = tuple[str, str, int]
Verdict = Literal["same bits", "within tolerance", "undecided", "fault"]
EXIT_CODES: Mapping[Verdict, int] = {"same bits": 0, "within tolerance": 0, "fault": 1, "undecided": 3}
Allowed = Callable[[Where], float]  # the largest difference of a score that counts as the same
IN_TRAINING = ("attention", "far", "link", "similarity")  # kinds of rows recorded in training on held-out rows
SAME = ("failed", "cannot", "chance", "baseline", "trained_tokens", "parameters", "encoding_parameters")


@dataclass(frozen=True)
class Rerun:
    """A trial that was run again.

    differences  a line for each, none if every number is equal
    around       what besides the code decides the bits, in the record and here
    """

    stored: Record
    again: Record
    differences: tuple[str, ...]
    around: tuple[Surrounding, ...]

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def decided(self) -> bool:
        """Whether a difference can only be the code's. If not, it may be rounding."""
        return not any(surrounding.rounds for surrounding in self.around)

    @property
    def same_code(self) -> bool:
        then, now = (record.about["provenance"]["fingerprint"] for record in (self.stored, self.again))
        return bool(then == now)


def run_again(
    stored: Record,
    folder: Path,
    text: Corpus | None,
    hardware: Hardware,
    report: Callable[[float], None],
    train: Train | None = None,
) -> Rerun:
    """Runs the trial of a record in one worker and compares the two. Writes nothing.

    Raises RuntimeError if the trial could not be run.
    """
    trial = Trial.model_validate(stored.about["trial"])
    origin = provenance(trial, hardware)
    again = None
    for event in Local(1).run([trial], Context(text, hardware, lambda number: True, [origin], folder, train)):
        if event.failure is not None:
            raise RuntimeError(f"{trial} could not be run: {event.failure}")
        report(event.share)
        again = event.value if event.finished else None
    assert again is not None
    return compared(stored, unpacked(again), origin)


def compared(stored: Record, again: Record, origin: Mapping[str, str]) -> Rerun:
    known = {name: stored.about[name] for name in ("key", "text", "numerics")}
    record = Record({**again.about, **known, "provenance": dict(origin)}, again.rows)
    return Rerun(stored, record, differences(record, stored), surroundings.compared(stored.about, record.about))


def differences(first: Record, other: Record) -> tuple[str, ...]:
    """A line for every difference, bit for bit. Times, dates and machines are not compared.

    Attention that was recorded in training is not compared if a record was made from kept weights of a trial with other
    scoring, because it was recorded on that trial's held-out rows.
    """
    rows_of_one, rows_of_other = first.rows, other.rows
    if "trained_as" in first.about or "trained_as" in other.about:
        rows_of_one, rows_of_other = map(_without_attention, (rows_of_one, rows_of_other))
    lines = [
        f"{name}: {first.about[name]!r} instead of {other.about[name]!r}"
        for name in SAME
        if first.about[name] != other.about[name]
    ]
    where = [name for name in rows_of_one.schema.names if name != "value"]
    if rows_of_one.select(where).to_pydict() != rows_of_other.select(where).to_pydict():
        return (*lines, f"other rows: {len(rows_of_one)} instead of {len(rows_of_other)}")
    ours, theirs = (rows["value"].to_numpy().astype(np.float32) for rows in (rows_of_one, rows_of_other))
    unlike = ours.view(np.uint32) != theirs.view(np.uint32)
    kinds = np.array(rows_of_one["kind"].to_pylist())
    for kind in dict.fromkeys(kinds[unlike].tolist()):
        there = unlike & (kinds == kind)
        most = np.abs(ours[there].astype(float) - theirs[there].astype(float)).max()
        lines.append(f"{kind}: {there.sum()} of {(kinds == kind).sum()} numbers differ, by up to {most:.3g}")
    return tuple(lines)


def _without_attention(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["kind"].cast("string"), pa.array(IN_TRAINING))))


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
