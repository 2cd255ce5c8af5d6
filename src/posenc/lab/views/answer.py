"""What fits which need best, together with whatever cannot be told from it; all of it computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from posenc.bilingual import Words
from posenc.lab.findings.titles import after_training, best, main_task, title
from posenc.lab.views.cells import (
    Arm,
    Findings,
    Task,
    arms_of,
    factor,
    far,
    find,
    fold,
    gained,
    home,
    learnt,
    mean_at,
    times,
    top,
    unit,
    value,
)
from posenc.lab.views.words import listed, of, say


class Card(NamedTuple):
    need: Words
    pick: Words
    why: Words


def cards(findings: Findings) -> list[Card]:
    return list(_cards(findings))


def _cards(findings: Findings) -> Iterator[Card]:
    task = main_task(findings)
    arms = learnt(task)
    if not arms:
        return
    yield _best("need home", task, arms, home(task))
    reaching = [arm for arm in arms if mean_at(arm, far(task)) is not None]
    if reaching and far(task) != home(task):
        yield _best("need far", task, reaching, far(task))
    rows = (findings["cost"] or {}).get("rows") or {}
    timed = [arm for arm in arms if (rows.get(arm["name"]) or {}).get("training") and arm["name"] != "nope"]
    if timed:
        cost = {arm["name"]: rows[arm["name"]]["training"] for arm in timed}
        timed.sort(key=lambda arm: cost[arm["name"]]["median"])
        first = cost[timed[0]["name"]]
        tied = [arm for arm in timed if cost[arm["name"]]["median"] <= first["high"]]
        yield Card(say("need cheap"), _named(tied), say("why time", ratio=times(first["median"])))
    plain = [arm for arm in arms if arm["factor"] and not (rows.get(arm["name"]) or {"parameters": 1})["parameters"]]
    if plain and top(task) > 1:
        most = max(arm["factor"]["value"] for arm in plain)
        tied = [arm for arm in plain if arm["factor"]["value"] == most]
        yield Card(
            say("need plain"), _named(tied), say("why plain", factor=factor(tied[0]["factor"], top(task)).split(" ")[0])
        )
    if len(findings["tasks"]) > 2:
        yield _tasks(findings)


def _best(need: str, task: Task, arms: list[Arm], length: str) -> Card:
    tied = best(task, arms, int(length))
    numbers = {"value": value(task, tied[0]["cells"][length]["mean"]), "unit": unit(task), "length": length}
    rise = tied[0]["rise"].get(length)
    words = {**numbers, "home": home(task)}
    why = say("why value", **words) if rise is None else say("why far", rise=gained(task, rise["mean"]), **words)
    return Card(say(need, times=fold(top(task))), _named(tied), why)


def _tasks(findings: Findings) -> Card:
    tasks = findings["tasks"]

    def count(name: str) -> int:
        return sum(bool(arm and arm["learnt"]) for arm in (find(task, name) for task in tasks))

    most = max(map(count, arms_of(findings)))
    names = [name for name in arms_of(findings) if count(name) == most]
    return Card(say("need tasks"), _few([title(name) for name in names]), say("why tasks", learnt=most, tasks=len(tasks)))


def _named(arms: list[Arm]) -> Words:
    return _few([title(arm["name"]) for arm in arms])


def _few(names: list[Words]) -> Words:
    """All of them, or the first three and how many more."""
    if len(names) <= 4:
        return listed(names)
    first, more = listed(names[:3]), len(names) - 3
    return say("and more", first=first, more=more, all=len(names))


def best_change(task: Task) -> Words:
    """Which change after training is best at 4× or the longest length that all of them have, and by how much."""
    found = after_training(task)
    if found is None or "" not in found[1]:
        return Words("", "")
    length, means = found
    first = next(iter(means))
    numbers = {"value": value(task, means[first]), "none": value(task, means[""]), "unit": unit(task)}
    change, ratio = say(f"change {first}"), fold(length / task["length"])
    return say("after best", task=of(task["title"]), times=ratio, change=change, **numbers)
