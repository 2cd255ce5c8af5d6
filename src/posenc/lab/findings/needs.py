"""Recommended encodings by need. A pick names the best encoding and all that do not differ from it measurably."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from posenc.lab.findings.comparing import best, fastest, ranked
from posenc.lab.findings.criteria import CONVERGED, RECOMMENDED
from posenc.lab.findings.titles import main_task, title
from posenc.lab.findings.wording import loss, score, times
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
COPYING = "copy"
SHOWN = 4  # names of a pick; of more, one less and how many more


class Need(NamedTuple):
    need: Words
    pick: Words
    why: Words


def as_data(found: Json) -> list[dict[str, dict[str, str]]]:
    """The needs as plain JSON."""
    return [{part: words._asdict() for part, words in need._asdict().items()} for need in needs(found)]


def needs(found: Json) -> Iterator[Need]:
    """Only encodings that learnt the trained length, in training that had converged, are recommended."""
    main = main_task(found)
    learnt = ranked(main)
    if unfinished := [arm for arm in main["arms"] if arm["learnt"] and arm["converged"] is False]:
        yield _undecided(main, unfinished)
    if learnt:
        yield _best(_of(main, Words("no longer than in training", "不超过训练长度")), main, learnt, main["length"])
        yield from _far(main, learnt)
        yield from _cheap(found, [arm["name"] for arm in learnt])
        yield from _plain(found, main, learnt)
    for task in (task for task in found["tasks"] if task["name"] == COPYING and _twice(task) > task["length"]):
        yield from _copying(task)
    if len(found["tasks"]) > 2:
        yield from _most_tasks(found)


def _undecided(task: Json, arms: Sequence[Json]) -> Need:
    """Which encodings no need can name, because their training was too short."""
    names = _names([arm["name"] for arm in arms])
    need = Words("Not ranked: training was too short", "未排名：训练太短")
    why = Words(
        f"training loss still fell by more than {CONVERGED:g} bits in the last fifth of the steps",
        f"训练损失在最后五分之一的步数里仍下降 {CONVERGED:g} 比特以上",
    )
    return Need(need, names, why)


def _best(need: Words, task: Json, arms: Sequence[Json], length: int) -> Need:
    tied = best(task, arms, length)
    said = score(task, tied[0]["cells"][str(length)]["mean"])
    why = Words(f"{said.en} at {length}", f"长度 {length}：{said.zh}")
    if rise := tied[0]["rise"].get(str(length)):
        lost = loss(task, rise["mean"])
        why = Words(f"{why.en}, {lost.en} from {task['length']}", f"{why.zh}，比 {task['length']} 时 {lost.zh}")
    return Need(need, _names([arm["name"] for arm in tied]), why)


def _far(task: Json, learnt: Sequence[Json]) -> Iterator[Need]:
    far = task["lengths"][-1]
    reaching = [arm for arm in learnt if arm["cells"][str(far)]["mean"] is not None]
    if not reaching or far == task["length"]:
        return
    at = times(task, far)
    need = _of(task, Words(f"{at.en} as long as in training", f"长达训练长度的 {at.zh}"))
    reached = max(arm["cells"][str(far)]["mean"] for arm in reaching)
    if task["measure"] == "exact" and reached < RECOMMENDED:
        yield Need(need, Words("none", "无"), Words(f"{reached:.0%} right at best", f"最好者正确率 {reached:.0%}"))
    else:
        yield _best(need, task, reaching, far)


def _of(task: Json, lengths: Words) -> Words:
    """Text of such lengths, or inputs of a task."""
    if task["measure"] == "bits":
        return Words(f"Text {lengths.en}", f"文本{lengths.zh}")
    called = Words(**task["title"])
    return Words(f"Inputs {lengths.en} ({called.en})", f"输入{lengths.zh}（{called.zh}）")


def _cheap(found: Json, names: Sequence[str]) -> Iterator[Need]:
    kinds = {
        "training": Words("Least time to train, besides NoPE", "训练最省时（NoPE 除外）"),
        "prefill": Words("Least time to read a prompt, besides NoPE", "读入提示最省时（NoPE 除外）"),
    }
    for kind, need in kinds.items():
        if tied := fastest(found, kind, names):
            ratio = found["cost"]["rows"][tied[0]][kind]["median"]
            yield Need(need, _names(tied), Words(f"{ratio:.2f}× the time of NoPE", f"耗时为 NoPE 的 {ratio:.2f} 倍"))


def _plain(found: Json, task: Json, learnt: Sequence[Json]) -> Iterator[Need]:
    rows = (found["cost"] or {}).get("rows") or {}
    plain = [arm for arm in learnt if arm["factor"] and (rows.get(arm["name"]) or {}).get("parameters") == 0]
    if not plain:
        return
    most = max(arm["factor"]["value"] for arm in plain)
    names = [arm["name"] for arm in plain if arm["factor"]["value"] == most]
    reach = ">" * any(arm["factor"]["censored"] for arm in plain if arm["name"] in names) + f"{most:.3g}"
    why = Words(f"valid up to {reach}× the trained length", f"有效长度为训练长度的 {reach} 倍")
    yield Need(Words("No parameters, and valid the furthest", "没有参数，且外推最远"), _names(names), why)


def _twice(task: Json) -> int:
    """The longest scored length up to twice the trained one, otherwise the next one."""
    lengths: list[int] = task["lengths"]
    return max(length for length in lengths if length <= max(2 * task["length"], task["length"] + 1))


def _copying(task: Json) -> Iterator[Need]:
    length = _twice(task)
    at = times(task, length)
    need = Words(f"Exact copying at {at.en} the trained length", f"在训练长度的 {at.zh}处准确复制")
    able = [arm for arm in ranked(task) if arm["cells"][str(length)]["mean"] is not None]
    if not able:
        return
    reached = max(arm["cells"][str(length)]["mean"] for arm in able)
    if reached < RECOMMENDED:
        yield Need(need, Words("none", "无"), Words(f"{reached:.0%} right at best", f"最好者正确率 {reached:.0%}"))
    else:
        yield _best(need, task, able, length)


def _most_tasks(found: Json) -> Iterator[Need]:
    count: dict[str, int] = {}
    for task in found["tasks"]:
        for arm in task["arms"]:
            count[arm["name"]] = count.get(arm["name"], 0) + bool(arm["learnt"])
    most, of = max(count.values(), default=0), len(found["tasks"])
    if most:
        names = [name for name, learnt in count.items() if learnt == most]
        why = Words(f"{most} of {of} tasks", f"{of} 个任务中的 {most} 个")
        yield Need(Words("Most tasks learnt", "学会的任务最多"), _names(names), why)


def _names(names: Sequence[str]) -> Words:
    """All names, or the first three and the number of the others."""
    if len(names) <= SHOWN:
        return joined(map(title, names), ", ", "、")
    first = joined(map(title, names[: SHOWN - 1]), ", ", "、")
    return Words(f"{first.en} and {len(names) - SHOWN + 1} more", f"{first.zh} 等 {len(names)} 种")
