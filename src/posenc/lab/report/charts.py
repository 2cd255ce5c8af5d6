"""The findings as curves: which series a chart has, in the page and in the pictures alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posenc.lab.findings.titles import main_task, title
from posenc.lab.report import svg
from posenc.lab.report.cells import (
    Arm,
    Findings,
    Score,
    Task,
    along,
    arms_of,
    cell,
    far,
    fold,
    gained,
    has_window,
    home,
    in_order,
    is_bits,
    learnt,
    scale,
)
from posenc.lab.report.style import Look, label, look, look_of_change
from posenc.lab.report.words import change_name, listed, measured_in, of, phrase, same
from posenc.lab.say import say
from posenc.lab.tasks.task import OPTIMUM
from posenc.support.languages import Words

PERCENT = (0.0, 100.0)
FLOOR = Look("ink", "dotted")  # of the best prediction
CHANGED = Look("blue", "dotted")  # of RoPE changed after training, beside RoPE


def curves(findings: Findings, task: Task) -> svg.Chart | None:
    """Quality against length of the encodings that learnt the task; None if none did. Where the last window was scored, a
    curve begins with it: the model itself, cut to the trained length, on the same targets.
    """
    arms = learnt(task)
    names = arms_of(findings)
    series = [
        svg.Series(
            label(arm["name"]), look(arm["name"], names).classes, points(task, arm), note(task, arm), rings(task, arm)
        )
        for arm in arms
    ]
    if series and task["floor"]:
        floor = task["floor"]["lengths"] | ({home(task): window} if (window := _cut_optimum(task)) else {})
        best = [(length, floor[str(length)], ()) for length in task["lengths"]]
        series.append(svg.Series(phrase("floor"), FLOOR.classes, best))
    return chart(task, series, phrase("curves")) if series else None


def _cut_optimum(task: Task) -> float | None:
    """The loss of the best prediction from exactly the trained length, where curves begin with the last window."""
    if not has_window(task) or not task["controls"]:
        return None
    bits: float = task["controls"]["predictors"][OPTIMUM]["last_window"]
    return bits


def opening(findings: Findings, task: Task) -> svg.Chart | None:
    """The curves, and beside them the best change of RoPE after training that has a row in the answer."""
    drawn = curves(findings, task)
    changed = next((row for row in findings["answer"]["rows"] if row["change"] and row["ranked"]), None)
    if drawn is None or changed is None:
        return drawn
    after = next(after for after in task["after"] if after["change"] == changed["change"])
    series = svg.Series(of(changed["name"]), CHANGED.classes, _dotted(task, after))
    return replace(drawn, series=[*drawn.series, series])


def chart(task: Task, series: Sequence[svg.Series], named: Words) -> svg.Chart:
    lengths, title_words = task["lengths"], of(task["title"])
    return svg.Chart(
        series,
        ticks=[(length, str(length)) for length in lengths],
        x_words=of(task["unit"]),
        y_words=measured_in(task["measure"]),
        described=say("{named}: {title_words}.", named=named, title_words=title_words),
        trained=svg.Mark(task["length"], phrase("trained")),
        x_log=True,
        levels=levels(task),
        y_range=None if is_bits(task) else PERCENT,
    )


def points(task: Task, arm: Arm) -> list[tuple[float, float, Sequence[float]]]:
    drawn: list[tuple[float, float, Sequence[float]]] = []
    for length in task["lengths"]:
        point = cell(task, arm, length)
        if length == task["length"] and arm["last_window"] and point.kind == "number":
            near = arm["last_window"]
            point = Score("number", point.words, near["mean"], tuple(near["seeds"].values()))
        if point.kind == "number" and point.number is not None:
            drawn.append((length, scale(task) * point.number, [scale(task) * seed for seed in point.seeds]))
    return drawn


def rings(task: Task, arm: Arm) -> list[tuple[float, float]]:
    """The score at the longest length of the model that was trained there."""
    mean = ((arm["oracle"] or {}).get(far(task)) or {}).get("mean")
    return [] if mean is None else [(float(far(task)), scale(task) * mean)]


def note(task: Task, arm: Arm) -> Words:
    """The change at the longest length, or the length at which the curve ends."""
    rise = arm["rise"].get(far(task))
    if rise is not None:
        return same(gained(task, rise["mean"]))
    reached = points(task, arm)
    return (
        phrase("ends at", length=f"{reached[-1][0]:.0f}") if reached and str(int(reached[-1][0])) != far(task) else same("")
    )


def levels(task: Task) -> list[svg.Level]:
    """Chance at every length, and the score of the baseline."""
    chance = [
        (float(length), scale(task) * task["chance"][str(length)])
        for length in task["lengths"]
        if str(length) in task["chance"]
    ]
    levels = [svg.Level(chance, phrase("chance"))] if chance else []
    if task["baseline"] is not None:
        seen = "counted" if task["floor"] else "causal" if task["causal"] else "masked"
        levels.append(svg.level(scale(task) * task["baseline"], task["lengths"], phrase(f"baseline {seen}")))
    return levels


def not_drawn(task: Task) -> Words | None:
    """Encodings that are not in the chart, with their score at the trained length or the reason why there is none."""

    def why(cell: Score) -> Words:
        return cell.words

    parts = []
    for arm in task["arms"]:
        at_home = cell(task, arm, task["length"])
        if at_home.kind != "number":
            name, reason = title(arm["name"]), why(at_home)
            parts.append(say("{name} ({details})", name=name, details=reason))
    return phrase("not drawn", rows=listed(parts)) if parts else None


def after(task: Task) -> svg.Chart | None:
    """Changes after training."""
    series = []
    for changed in task["after"]:
        if drawn := _dotted(task, changed):
            name = changed["change"]
            series.append(svg.Series(change_name(name), look_of_change(name).classes, drawn))
    return chart(task, series, phrase("after")) if series else None


def _dotted(task: Task, scored: Mapping[str, Any]) -> list[tuple[float, float, Sequence[float]]]:
    """The points of a curve, each with a dot for every seed, from cells by length and the last window, if it was scored."""
    cells = scored["cells"] | ({home(task): scored["last_window"]} if scored["last_window"] else {})
    return [
        (length, scale(task) * data["mean"], [scale(task) * seed for seed in data["seeds"].values()])
        for length in task["lengths"]
        if (data := cells.get(str(length))) and data.get("mean") is not None
    ]


def by_position(findings: Findings, task: Task) -> svg.Chart | None:
    """Loss by position in one long window."""
    names = arms_of(findings)
    if task["measure"] != "bits" or not task["causal"]:
        return None  # there, positions are not lengths: answers follow questions, or few positions have targets
    arms = [arm for arm in learnt(task) if arm["by_position"]]
    if not arms:
        return None
    longest = max(arm["by_position"]["length"] for arm in arms)
    series = [_plain(arm, along(task, arm), names) for arm in arms]
    if task["floor"]:
        best = [(x, y, ()) for x, y in along(task, task["floor"])]
        series.append(svg.Series(phrase("floor"), FLOOR.classes, best))
    ticks = [(position, str(position)) for position in range(0, longest + 1, max(longest // 4, 1))]
    return svg.Chart(
        series,
        ticks,
        phrase("window position"),
        phrase("bits low"),
        phrase("positions"),
        trained=svg.Mark(task["length"], phrase("trained")),
        x_log=False,
    )


def learning(findings: Findings, task: Task) -> svg.Chart | None:
    """Training loss of all encodings, which shows whether more training might have helped."""
    names = arms_of(findings)
    arms = [arm for arm in task["arms"] if arm["curve"] and arm["curve"]["step"]]
    if not arms:
        return None
    series = [_plain(arm, list(zip(arm["curve"]["step"], arm["curve"]["bits"], strict=True)), names) for arm in arms]
    last = max(arm["curve"]["step"][-1] for arm in arms)
    words = of(task["title"])
    return svg.Chart(
        series,
        [(step, f"{step:.0f}") for step in (0, last / 2, last)],
        phrase("step"),
        phrase("loss"),
        say("{phrase}: {words}.", phrase=phrase("learning"), words=words),
        trained=None,
        x_log=False,
    )


def _plain(arm: Arm, points: Sequence[tuple[float, float]], names: Sequence[str]) -> svg.Series:
    """A curve without dots for single seeds."""
    return svg.Series(label(arm["name"]), look(arm["name"], names).classes, [(x, y, ()) for x, y in points])


def pareto(findings: Findings, over: str) -> tuple[list[svg.Spot], svg.Axis, svg.Axis] | None:
    """Training time against `over`, factor or area, of the main task."""
    task, names = main_task(findings), arms_of(findings)
    dots = []
    for arm in learnt(task):
        cost = ((findings["cost"] or {}).get("rows") or {}).get(arm["name"]) or {}
        if cost.get("training") and arm[over] is not None:
            time = cost["training"]
            middle = arm["factor"]["value"] if over == "factor" else scale(task) * arm["area"]
            low, high = (arm["factor"]["low"], arm["factor"]["high"]) if over == "factor" else (middle, middle)
            spread = (middle, middle, middle) if low is None else (low, middle, high)
            dots.append((arm["name"], (time["low"], time["median"], time["high"]), spread))
    if not dots:
        return None
    less = over == "area" and is_bits(task)
    spots = [
        svg.Spot(
            _reached(task, name, over),
            look(name, names).classes,
            x,
            y,
            not any(_beats(other, (x, y), less) for _, *other in dots),
        )
        for name, x, y in dots
    ]
    return spots, _time_axis(spots), _factor_axis(spots) if over == "factor" else _area_axis(task, spots)


def _reached(task: Task, name: str, over: str) -> Words:
    """A name, with ">8×" if the longest length was still valid."""
    arm = next(arm for arm in task["arms"] if arm["name"] == name)
    words = label(name)
    if over != "factor" or not arm["factor"]["censored"]:
        return words
    return Words("{name} >{times}").filled(name=words, times=fold(arm["factor"]["value"]))


def strips(findings: Findings, task: Task) -> tuple[list[svg.Strip], svg.Axis, list[svg.Mark]] | None:
    """A chart of a task with a single length: all encodings, hollow dots if not learnt."""
    names, rows = arms_of(findings), []
    for arm in in_order(task):
        score = cell(task, arm, task["length"])
        if score.number is not None:
            seeds = [scale(task) * seed for seed in score.seeds]
            rows.append(
                svg.Strip(
                    label(arm["name"]),
                    look(arm["name"], names).classes,
                    scale(task) * score.number,
                    seeds,
                    score.kind != "number",
                )
            )
    if not rows:
        return None
    marks = [svg.Mark(level.points[0][1], level.words) for level in levels(task)]
    values = [seed for row in rows for seed in (row.mean, *row.seeds)]
    words = measured_in(task["measure"])
    if not is_bits(task):
        return rows, svg.Axis(words, [(tick, str(tick)) for tick in range(0, 101, 20)], False), marks
    step = svg.step_of(max(max(values) - min(values), 0.5))
    every = [round(step * n, 9) for n in range(int(max(values) / step) + 3)]
    ticks = enclosing(every, min(values), max(values))
    marks = [mark for mark in marks if ticks[0] <= mark.at <= ticks[-1]]
    return rows, svg.Axis(words, [(tick, f"{tick:.6g}") for tick in ticks], False), marks


def _beats(first: Sequence[tuple[float, float, float]], other: Sequence[tuple[float, float, float]], less: bool) -> bool:
    """Whether one is at least as good in both measures and better in one."""
    time, other_time = first[0][1], other[0][1]
    good, other_good = (-first[1][1], -other[1][1]) if less else (first[1][1], other[1][1])
    return time <= other_time and good >= other_good and (time, good) != (other_time, other_good)


def _time_axis(spots: Sequence[svg.Spot]) -> svg.Axis:
    marks = [0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024]
    ticks = enclosing(marks, min(spot.x[0] for spot in spots), max(spot.x[2] for spot in spots))
    return svg.Axis(phrase("pareto time"), [(tick, f"{tick:g}×") for tick in ticks], True)


def _factor_axis(spots: Sequence[svg.Spot]) -> svg.Axis:
    marks = [2.0**power for power in range(-4, 12)]
    ticks = enclosing(marks, min(spot.y[0] for spot in spots), max(spot.y[2] for spot in spots))
    return svg.Axis(phrase("pareto factor"), [(tick, f"{tick:g}×") for tick in ticks], True)


def _area_axis(task: Task, spots: Sequence[svg.Spot]) -> svg.Axis:
    values = [spot.y[1] for spot in spots]
    step = svg.step_of(max(max(values) - min(values), 1e-3))
    marks = [round(step * n, 9) for n in range(int(min(values) / step) - 2, int(max(values) / step) + 3)]
    unit = phrase("bits" if is_bits(task) else "exact")
    words = phrase("pareto area", unit=unit, better=phrase("less" if is_bits(task) else "more"))
    return svg.Axis(words, [(tick, f"{tick:.6g}") for tick in enclosing(marks, min(values), max(values))], False)


def enclosing(marks: Sequence[float], low: float, high: float) -> list[float]:
    """The marks that cover low … high with a margin, at least two."""
    first = max((n for n, mark in enumerate(marks) if mark <= low), default=0)
    last = min((n for n, mark in enumerate(marks) if mark >= high), default=len(marks) - 1)
    if last == first:
        first, last = max(first - 1, 0), min(last + 1, len(marks) - 1)
    return list(marks[first : last + 1])
