"""The answer of an experiment on one screen: its main task, one row for each encoding, and three sentences.

row        score at the trained and at the longest length, one word, the mean at every length
can        which encodings the seeds tell apart at the longest length, and by how much the first is ahead
cannot     which they do not tell from the first, and what one task in small models leaves open
next       the command that answers more

Two rows are told apart if the paired test of `statistics` finds a difference at 5 % after Holm's correction over all pairs.
Only encodings that learnt the trained length, in training that had converged, take part, and pairs that share at least
FEWEST seeds are told apart. A change of RoPE's frequencies after training that follows the length has a row of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from posenc.lab.experiment.change import Change
from posenc.lab.findings import criteria
from posenc.lab.findings.arm_cells import reference
from posenc.lab.findings.comparing import behind, pairing, told_apart, worse
from posenc.lab.findings.criteria import ENOUGH, MISSING
from posenc.lab.findings.statistics import Paired
from posenc.lab.findings.titles import changed_title, main_task, title
from posenc.lab.findings.wording import difference, numbered, score, task_title, times
from posenc.lab.say import say
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
WORDS = {"flat": say("stays"), "fades": say("fades"), "breaks": say("breaks")}
NOT_LEARNT, IMPROVING, ENDS, FAILED = say("not learnt"), say("unfinished"), say("ends"), say("failed")
NOT_RUN = say("not run")
NAMED = 4  # names in a sentence; of more, one less and how many more


class Row(NamedTuple):
    """An encoding, or a change of RoPE after training. `far` is the cell of the longest length, None if not ranked."""

    name: Words
    word: Words
    means: list[float | None]
    interval: list[float] | None
    far: Json | None
    change: str
    arm: str
    retrieved: float | None  # share of rows at the longest length whose answer was found, in any order


def answer(findings: Json) -> dict[str, Any]:
    """The rows, those that may be ranked first and the best of them first; then the sentences, in both languages."""
    task = main_task(findings)
    rows = sorted(_rows(task), key=lambda row: _order(task, row))
    ranked = [n for n, row in enumerate(rows) if row.far]
    pairs = told_apart(task, [row.far for row in rows if row.far])
    apart = {(ranked[better], ranked[other]) for better, other in pairs}
    told = {"can": _can(task, rows, apart), "cannot": _cannot(findings, task, rows, apart), "next": _next(findings, task)}
    return {
        "task": task["name"],
        "rows": [
            {
                **{name: value for name, value in row._asdict().items() if name != "far"},
                "name": row.name.as_dict(),
                "word": row.word.as_dict(),
                "seeds": row.far["seeds"] if row.far else {},
                "ranked": row.far is not None,
            }
            for row in rows
        ],
        **{name: words.as_dict() for name, words in told.items()},
    }


def _rows(task: Json) -> Iterator[Row]:
    for arm in task["arms"]:
        yield _row(task, arm, title(arm["name"]), arm, "")
    rope = next((arm for arm in task["arms"] if arm["name"] == "rope"), None)
    for changed in task["after"]:
        if rope is not None and changed["change"] and Change.parse(changed["change"]).factor is None:
            yield _row(task, rope, changed_title(changed["change"]), changed, changed["change"])


def _row(task: Json, arm: Json, name: Words, scored: Json, change: str) -> Row:
    """`scored` has the cells and the last window: those of the arm, or of a change of it."""
    cells = scored["cells"]
    means = [cells.get(str(length), {}).get("mean") for length in task["lengths"]]
    far, at_home = cells.get(str(task["lengths"][-1]), {}), cells.get(str(task["length"]), {})
    there = far.get("mean") is not None and arm["learnt"]
    ranked = there and arm["converged"] is not False
    interval = bounded(task["measure"], Paired(list(far["seeds"].values()), far.get("rows") or ())) if ranked else None
    if not arm["learnt"]:
        states = {"cannot": ENDS, "failed": FAILED, MISSING: NOT_RUN}
        word = next((ending for start, ending in states.items() if (arm["state"] or "").startswith(start)), NOT_LEARNT)
    elif not there:
        word = FAILED if (far.get("state") or "").startswith("failed") else ENDS
    elif not ranked:
        word = IMPROVING
    else:
        compared = reference(task["measure"], at_home, scored["last_window"])
        word = WORDS[criteria.behaviour(task["measure"], compared["mean"], far["mean"])]
    found = task.get("retrieved", {}).get(arm["name"], {}).get(change, {}).get(str(task["lengths"][-1]))
    return Row(name, word, means, interval, far if ranked else None, change, arm["name"], found)


def bounded(measure: str, scores: Paired) -> list[float] | None:
    """The 95 % interval of the mean; a share stays between 0 and 1. None with fewer than two seeds."""
    if (half := scores.half_width) is None:
        return None
    low, high = scores.mean - half, scores.mean + half
    return [low, high] if measure == "bits" else [max(0.0, low), min(1.0, high)]


def _order(task: Json, row: Row) -> tuple[int, float]:
    """Ranked rows by their mean at the longest length; then those that end earlier, by the length that they reach."""
    if row.far:
        assert row.means[-1] is not None
        return 0, worse(task, row.means[-1])
    reached = sum(mean is not None for mean in row.means)
    return 1 + (reached == 0), -float(reached)


# In words -------------------------------------------------------------------------------------------------------------


def _can(task: Json, rows: Sequence[Row], apart: set[tuple[int, int]]) -> Words:
    ranked = [n for n, row in enumerate(rows) if row.far]
    at = times(task, task["lengths"][-1])
    if not apart:
        return say("This can tell no two encodings apart at {at} the trained length.", at=at)
    first = ranked[0]
    beaten = [n for n in ranked if (first, n) in apart]
    if not beaten:
        pairs = joined((say("{a} from {b}", a=rows[a].name, b=rows[b].name) for a, b in sorted(apart)[:NAMED]), ", ", "、")
        return say("This can tell at {at} the trained length: {pairs}.", at=at, pairs=pairs)
    last = beaten[-1]
    ahead = behind(task, rows[first].far, rows[last].far)  # type: ignore[arg-type]
    return say(
        "This can tell: at {at} the trained length, {first} ({score}) is ahead of {names}; of {last} by {by} (95 % "
        "interval; {pairing}, Holm's correction for {pairs}).",
        pairing=pairing([row.far for row in rows if row.far]),
        at=at,
        first=rows[first].name,
        score=score(task, rows[first].means[-1]),  # type: ignore[arg-type]
        names=_names([rows[n].name for n in beaten]),
        last=rows[last].name,
        by=difference(task, ahead),
        pairs=numbered(math.comb(len(ranked), 2), "pair", "pairs"),
    )


def _cannot(findings: Json, task: Json, rows: Sequence[Row], apart: set[tuple[int, int]]) -> Words:
    ranked, layers = (
        [n for n, row in enumerate(rows) if row.far],
        numbered(findings["size"]["n_layers"], "layer", "layers"),
    )
    general = say(
        "other tasks or larger models: this is one task ({called}), in models of {layers}",
        called=task_title(task),
        layers=layers,
    )
    unsure = [rows[n].name for n in ranked[1:] if (ranked[0], n) not in apart]
    if unsure:
        return say(
            "This cannot tell {first} from {names}, nor {general}.",
            first=rows[ranked[0]].name,
            names=_names(unsure),
            general=general,
        )
    return say("This cannot tell {general}.", general=general)


def _next(findings: Json, task: Json) -> Words:
    """What has not run, more training where it was too short, more seeds where they are few, or the user's own text."""
    if waiting := sum(not row["why"].startswith("failed") for row in findings["missing"]):
        return say("Next: the same command again; {trials} did not run.", trials=numbered(waiting, "trial", "trials"))
    if all(arm["state"] not in (None, criteria.NOT_LEARNT) for arm in task["arms"]):
        return say("Next: read why no encoding has a score.")
    short = [arm for arm in task["arms"] if arm["learnt"] and arm["converged"] is False]
    none = not any(arm["learnt"] for arm in task["arms"])
    if short or none:
        return say("Next: longer training; {steps:,} steps were too few.", steps=task["training"]["steps"])
    if len(findings["seeds"]) < ENOUGH:
        return say("Next: more seeds: posenc lab run study")
    return say("Next: your own text: posenc compare --text FOLDER --budget 1h")


def _names(names: Sequence[Words]) -> Words:
    """All names, or the first and the number of the others."""
    if len(names) <= NAMED:
        return joined(names, ", ", "、")
    first = joined(names[: NAMED - 1], ", ", "、")
    return say("{first} and {others} more", first=first, others=Words(str(len(names) - NAMED + 1), str(len(names))))
