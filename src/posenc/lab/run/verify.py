"""Verifies that this code reproduces the results of other code: a sample of the trials is run again and compared.

    records with an older fingerprint ─► a sample that covers their tasks and encodings ─► run again ─► compare

If all are equal bit for bit, the pairs of fingerprints are recorded and the results stay. Otherwise nothing is recorded.
A difference is the code's if torch, the instruction set and the processor are the record's; if not, it may be rounding.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from posenc.lab.engines.engine import Context
from posenc.lab.experiment import Trial
from posenc.lab.records import surroundings, verified
from posenc.lab.records.fingerprint import fingerprint
from posenc.lab.records.provenance import environment, provenance, revision
from posenc.lab.records.record import Record
from posenc.lab.records.results import unpacked

if TYPE_CHECKING:
    from posenc.lab.engines.engine import Engine, Train
    from posenc.lab.records.results import Folder
    from posenc.lab.records.surroundings import Surrounding
    from posenc.lab.text.corpus import Corpus
    from posenc.lab.trial.training import Hardware

IN_TRAINING = ("attention", "far", "link", "similarity")  # kinds of rows recorded in training on held-out rows
SAME = ("failed", "cannot", "chance", "baseline", "trained_tokens", "parameters", "encoding_parameters")


class Kept(NamedTuple):
    """A finished trial of the last sweep, and the fingerprints of the code that made it and of the present code."""

    trial: Trial
    record: Record
    today: str

    @property
    def key(self) -> str:
        key: str = self.record.about["key"]
        return key

    @property
    def old(self) -> str:
        old: str = self.record.about["provenance"]["fingerprint"]
        return old


@dataclass(frozen=True)
class Rerun:
    """A trial that was run again.

    differences  a line for each, none if every number is equal
    record       None if the trial could not be run
    around       what besides the code decides the bits, in the record (or the reference) most like this machine, and here
    """

    kept: Kept
    differences: tuple[str, ...]
    record: Record | None = None
    around: tuple[Surrounding, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def decided(self) -> bool:
        """Whether a difference can only be the code's. If not, it may be rounding."""
        return not any(surrounding.rounds for surrounding in self.around)


def kept_trials(folder: Folder) -> list[Kept]:
    """Every finished trial of the last sweep. Raises ValueError for a trial that this version of posenc cannot run."""
    manifest, kept = folder.experiment() or {}, list[Kept]()
    for key in (*manifest.get("tuning", ()), *manifest.get("keys", ())):
        if (record := folder.get(key)) is not None:
            trial = Trial.model_validate(record.about["trial"])
            kept.append(Kept(trial, record, fingerprint(trial)))
    return kept


def touched(folder: Folder, kept: Sequence[Kept]) -> list[Kept]:
    """Trials made by code that is neither the present code nor known to give the same numbers."""
    known = verified.pairs(folder.path)
    return [kept_trial for kept_trial in kept if not verified.stands(kept_trial.record.about, kept_trial.today, known)]


def sample(kept: Sequence[Kept], size: int, referenced: frozenset[str] = frozenset()) -> list[Kept]:
    """A sample of at least `size` trials that contains every task and every encoding.

    The sample is the same for the same folder and code. Trials that were trained come first, and among them those with a
    reference (`referenced` are their keys).
    """

    def order(trial: Kept) -> tuple[bool, bool, int, str]:
        shuffled = hashlib.sha256(f"{trial.key} {trial.today}".encode()).hexdigest()
        return (
            not trial.record.about["trained_tokens"],
            trial.key not in referenced,
            -len(_covers(trial) & left),
            shuffled,
        )

    waiting, chosen = list(kept), list[Kept]()
    left = {name for kept_trial in kept for name in _covers(kept_trial)}
    while left:
        best = min((candidate for candidate in waiting if _covers(candidate) & left), key=order)
        chosen.append(best)
        waiting.remove(best)
        left -= _covers(best)
    return [*chosen, *sorted(waiting, key=order)[: max(0, size - len(chosen))]]


def _covers(kept_trial: Kept) -> set[tuple[str, str]]:
    return {("task", kept_trial.trial.task.name), ("encoding", kept_trial.trial.encoding)}


def run_again(
    chosen: Sequence[Kept],
    folder: Folder,
    engine: Engine,
    text: Corpus | None,
    hardware: Hardware,
    progress: Callable[[Kept, float], None],
    ended: Callable[[Rerun], None],
    train: Train | None = None,
) -> list[Rerun]:
    """Runs the trials on an engine and compares each with its record and its references. Writes nothing."""
    there = verified.references(folder.path)
    origins = [provenance(kept_trial.trial, hardware) for kept_trial in chosen]
    context = Context(text, hardware, lambda number: True, origins, folder.path, train)
    reruns = list[Rerun]()
    try:
        with contextlib.closing(engine.run([kept_trial.trial for kept_trial in chosen], context)) as events:
            for event in events:
                trial = chosen[event.number]
                if not event.finished:
                    progress(trial, event.share)
                    continue
                if event.failure is not None:
                    rerun = Rerun(trial, (f"it could not be run: {event.failure}",))
                else:
                    rerun = compared(trial, unpacked(event.value), there.get(trial.key, ()), origins[event.number])
                reruns.append(rerun)
                ended(rerun)
    finally:
        engine.close()
    return reruns


def compared(kept: Kept, again: Record, references: Sequence[Record], origin: Mapping[str, str]) -> Rerun:
    """Compares the re-run with the record and, if that differs, with each reference."""
    about = {**again.about, "key": kept.key, "text": kept.record.about["text"], "provenance": dict(origin)}
    record = Record({**about, "numerics": kept.record.about["numerics"]}, again.rows)
    lines = differences(again, kept.record)
    if any(not differences(again, reference) for reference in references):
        lines = ()
    return Rerun(kept, lines, record, surroundings.nearest([kept.record, *references], record))


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


def record_equal(folder: Folder, stood_for: Sequence[Kept], reruns: Sequence[Rerun], hardware: Hardware) -> int:
    """Adds the verification to the folder. Returns the number of pairs of fingerprints recorded as equal."""
    equal = sorted({(kept_trial.old, kept_trial.today) for kept_trial in stood_for})
    entry = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": revision(),
        **environment(hardware),
        **surroundings.here(),
        "trials": sorted(rerun.kept.key[:16] for rerun in reruns),
        "equal": equal,
    }
    verified.add(folder.path, entry)
    return len(equal)


def as_data(rerun: Rerun) -> dict[str, Any]:
    trial = rerun.kept.trial
    return {
        "key": rerun.kept.key,
        "task": trial.task.name,
        "encoding": trial.encoding,
        "seed": trial.seed,
        "oracle": trial.oracle,
        "equal": rerun.equal,
        "differences": list(rerun.differences),
        "surroundings": [surrounding._asdict() for surrounding in rerun.around],
    }
