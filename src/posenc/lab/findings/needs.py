"""Recommended encodings by need. A pick names the best encoding and all that do not differ from it measurably."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from posenc.lab.findings.comparing import best, fastest, ranked
from posenc.lab.findings.criteria import CONVERGED, RECOMMENDED
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import loss, score, times
from posenc.lab.say import say
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
COPYING = "copy"
SHOWN = 4  # names of a pick; of more, one less and how many more


class Need(NamedTuple):
    need: Words
    pick: Words
    why: Words


def as_data(findings: Json) -> list[dict[str, dict[str, str]]]:
    """The needs as plain JSON."""
    return [{part: words.as_dict() for part, words in need._asdict().items()} for need in needs(findings)]


def needs(findings: Json) -> Iterator[Need]:
    """Only encodings that learnt the trained length, in training that had converged, are recommended."""
    main = main_task(findings)
    learnt = ranked(main)
    if unfinished := [arm for arm in main["arms"] if arm["learnt"] and arm["converged"] is False]:
        yield _undecided(main, unfinished)
    if learnt:
        yield _best(_of(main, say("no longer than in training")), main, learnt, main["length"])
        yield from _far(main, learnt)
        yield from _cheap(findings, [arm["name"] for arm in learnt])
        yield from _plain(findings, main, learnt)
    for task in (task for task in findings["tasks"] if task["name"] == COPYING and _twice(task) > task["length"]):
        yield from _copying(task)
    if len(findings["tasks"]) > 2:
        yield from _most_tasks(findings)


def _undecided(task: Json, arms: Sequence[Json]) -> Need:
    """Which encodings no need can name, because their training was too short."""
    names = _names([arm["name"] for arm in arms])
    need = say("Not ranked: training was too short")
    why = say(
        "the training loss, or the loss at the longest length, still moved by more than {converged:g} bits in the last "
        "fifth of the steps",
        converged=CONVERGED,
    )
    return Need(need, names, why)


def _best(need: Words, task: Json, arms: Sequence[Json], length: int) -> Need:
    tied = best(task, arms, length)
    best_score = score(task, tied[0]["cells"][str(length)]["mean"])
    why = say("{score} at {length}", score=best_score, length=length)
    if rise := tied[0]["rise"].get(str(length)):
        lost = loss(task, rise["mean"])
        why = say("{why}, {lost} from {length}", why=why, lost=lost, length=task["length"])
    return Need(need, _names([arm["name"] for arm in tied]), why)


def _far(task: Json, learnt: Sequence[Json]) -> Iterator[Need]:
    """Of the encodings that stay as good as at the trained length, where some do."""
    far = task["lengths"][-1]
    reaching = [arm for arm in learnt if arm["cells"][str(far)]["mean"] is not None]
    if not reaching or far == task["length"]:
        return
    at = times(task, far)
    need = _of(task, say("{at} as long as in training", at=at))
    reached = max(arm["cells"][str(far)]["mean"] for arm in reaching)
    if task["measure"] == "exact" and reached < RECOMMENDED:
        yield Need(need, say("none"), say("{reached:.0%} right at best", reached=reached))
    else:
        kept = [arm for arm in reaching if arm["behaviour"] == "flat"]
        yield _best(need, task, kept or reaching, far)


def _of(task: Json, lengths: Words) -> Words:
    """Text of such lengths, or inputs of a task."""
    if task["measure"] == "bits":
        return say("Text {lengths}", lengths=lengths)
    called = Words(**task["title"])
    return say("Inputs {lengths} ({called})", lengths=lengths, called=called)


def _cheap(findings: Json, names: Sequence[str]) -> Iterator[Need]:
    kinds = {
        "training": say("Least time to train, besides NoPE"),
        "prefill": say("Least time to read a prompt, besides NoPE"),
    }
    for kind, need in kinds.items():
        if tied := fastest(findings, kind, names):
            ratio = findings["cost"]["rows"][tied[0]][kind]["median"]
            yield Need(need, _names(tied), say("{ratio:.2f}× the time of NoPE", ratio=ratio))


def _plain(findings: Json, task: Json, learnt: Sequence[Json]) -> Iterator[Need]:
    rows = (findings["cost"] or {}).get("rows") or {}
    plain = [arm for arm in learnt if arm["factor"] and (rows.get(arm["name"]) or {}).get("parameters") == 0]
    if not plain:
        return
    most = max(arm["factor"]["value"] for arm in plain)
    names = [arm["name"] for arm in plain if arm["factor"]["value"] == most]
    reach = ">" * any(arm["factor"]["censored"] for arm in plain if arm["name"] in names) + f"{most:.3g}"
    why = say("score kept up to {reach}× the trained length", reach=reach)
    yield Need(say("No parameters, and the score kept furthest"), _names(names), why)


def _twice(task: Json) -> int:
    """The longest scored length up to twice the trained one, otherwise the next one."""
    lengths: list[int] = task["lengths"]
    return max(length for length in lengths if length <= max(2 * task["length"], task["length"] + 1))


def _copying(task: Json) -> Iterator[Need]:
    length = _twice(task)
    at = times(task, length)
    need = say("Exact copying at {at} the trained length", at=at)
    able = [arm for arm in ranked(task) if arm["cells"][str(length)]["mean"] is not None]
    if not able:
        return
    reached = max(arm["cells"][str(length)]["mean"] for arm in able)
    if reached < RECOMMENDED:
        yield Need(need, say("none"), say("{reached:.0%} right at best", reached=reached))
    else:
        yield _best(need, task, able, length)


def _most_tasks(findings: Json) -> Iterator[Need]:
    count: dict[str, int] = {}
    for task in findings["tasks"]:
        for arm in task["arms"]:
            count[arm["name"]] = count.get(arm["name"], 0) + bool(arm["learnt"])
    most, of = max(count.values(), default=0), len(findings["tasks"])
    if most:
        names = [name for name, learnt in count.items() if learnt == most]
        why = say("{most} of {of} tasks", most=most, of=of)
        yield Need(say("Most tasks learnt"), _names(names), why)


def _names(names: Sequence[str]) -> Words:
    """All names, or the first three and the number of the others."""
    if len(names) <= SHOWN:
        return joined(map(title, names), ", ", "、")
    first = joined(map(title, names[: SHOWN - 1]), ", ", "、")
    return say("{first} and {others} more", first=first, others=Words(str(len(names) - SHOWN + 1), str(len(names))))
