"""The findings as curves: which series a chart has, on the page and in the pictures alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posenc.lab.findings.titles import main_task, title
from posenc.lab.report.cells import (
    Arm,
    Findings,
    Score,
    Task,
    along,
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
from posenc.lab.report.chart import Chart, Row, Rows, Series
from posenc.lab.report.words import change_name, listed, measured_in, of, phrase, same
from posenc.lab.say import say
from posenc.lab.tasks.task import OPTIMUM
from posenc.support.languages import Words

PERCENT = (0.0, 100.0)
LEVEL, CHANGED, OFF = "level", "changed", "off"  # kinds of series
BESIDE = 0.1  # of the curves' range: references further away would flatten the curves
MOST_STEPS = 400  # points of a curve while training

Points = list[tuple[float, float, Sequence[float]]]


def curves(findings: Findings, task: Task) -> Chart | None:
    """Quality against length of the encodings that learnt the task; None if none did. Where the last window was scored, a
    curve begins with it: the model itself, cut to the trained length, on the same targets.
    """
    arms = learnt(task)
    series = [Series(title(arm["name"]), arm["name"], points(task, arm), note=note(task, arm)) for arm in arms]
    series = [one for one in series if one.points]
    series += [found for arm in arms for found in _oracle(task, arm)]
    if series and task["floor"]:
        floor = task["floor"]["lengths"] | ({home(task): window} if (window := _cut_optimum(task)) else {})
        series.append(Series(phrase("floor"), "", [(length, floor[str(length)], ()) for length in task["lengths"]], LEVEL))
    return chart(task, series, phrase("curves")) if series else None


def _cut_optimum(task: Task) -> float | None:
    """The loss of the best prediction from exactly the trained length, where curves begin with the last window."""
    if not has_window(task) or not task["controls"]:
        return None
    bits: float = task["controls"]["predictors"][OPTIMUM]["last_window"]
    return bits


def opening(findings: Findings, task: Task) -> Chart | None:
    """The curves, and beside them the best change of RoPE after training that has a row in the answer."""
    drawn = curves(findings, task)
    changed = next((row for row in findings["answer"]["rows"] if row["change"] and row["ranked"]), None)
    if drawn is None or changed is None:
        return drawn
    after = next(after for after in task["after"] if after["change"] == changed["change"])
    series = Series(of(changed["name"]), changed["change"], _changed(task, after), CHANGED)
    return drawn._replace(series=[*drawn.series, series])


def chart(task: Task, series: Sequence[Series], named: Words) -> Chart:
    """The series against length, with the references that lie beside them."""
    means = [y for one in series for _, mean, seeds in one.points for y in (mean, *seeds)]
    low, high = (min(means), max(means)) if is_bits(task) else PERCENT
    margin = BESIDE * (high - low)
    beside = [one for one in levels(task) if all(low - margin <= y <= high + margin for _, y, _ in one.points)]
    return Chart(
        [*series, *beside],
        x=of(task["unit"]),
        y=measured_in(task["measure"]),
        described=say("{named}: {title_words}.", named=named, title_words=of(task["title"])),
        ticks=task["lengths"],
        trained=task["length"],
        y_range=None if is_bits(task) else PERCENT,
    )


def points(task: Task, arm: Arm) -> Points:
    drawn: Points = []
    for length in task["lengths"]:
        point = cell(task, arm, length)
        if length == task["length"] and arm["last_window"] and point.kind == "number":
            near = arm["last_window"]
            point = Score("number", point.words, near["mean"], tuple(near["seeds"].values()))
        if point.kind == "number" and point.number is not None:
            drawn.append((length, scale(task) * point.number, [scale(task) * seed for seed in point.seeds]))
    return drawn


def _oracle(task: Task, arm: Arm) -> list[Series]:
    """The score at the longest length of the model that was trained there."""
    mean = ((arm["oracle"] or {}).get(far(task)) or {}).get("mean")
    if mean is None:
        return []
    name = say("{name}, trained at {length}", name=title(arm["name"]), length=far(task))
    return [Series(name, arm["name"], [(int(far(task)), scale(task) * mean, ())], OFF)]


def note(task: Task, arm: Arm) -> Words:
    """The change at the longest length, or the length at which the curve ends."""
    rise = arm["rise"].get(far(task))
    if rise is not None:
        return same(gained(task, rise["mean"]))
    reached = points(task, arm)
    return (
        phrase("ends at", length=f"{reached[-1][0]:.0f}") if reached and str(int(reached[-1][0])) != far(task) else same("")
    )


def levels(task: Task) -> list[Series]:
    """Chance at every length, and the score of the baseline."""
    chance: Points = [
        (length, scale(task) * task["chance"][str(length)], ())
        for length in task["lengths"]
        if str(length) in task["chance"]
    ]
    found = [Series(phrase("chance"), "", chance, LEVEL)] if chance else []
    if task["baseline"] is not None:
        seen = "counted" if task["floor"] else "causal" if task["causal"] else "masked"
        everywhere: Points = [(length, scale(task) * task["baseline"], ()) for length in task["lengths"]]
        found.append(Series(phrase(f"baseline {seen}"), "", everywhere, LEVEL))
    return found


def not_drawn(task: Task) -> Words | None:
    """Encodings that are not in the chart, with their score at the trained length or the reason why there is none."""
    parts = []
    for arm in task["arms"]:
        at_home = cell(task, arm, task["length"])
        if at_home.kind != "number":
            parts.append(say("{name} ({details})", name=title(arm["name"]), details=at_home.words))
    return phrase("not drawn", rows=listed(parts)) if parts else None


def after(task: Task) -> Chart | None:
    """Changes after training."""
    series = [
        Series(change_name(changed["change"]), changed["change"] or "rope", drawn)
        for changed in task["after"]
        if (drawn := _changed(task, changed))
    ]
    return chart(task, series, phrase("after")) if series else None


def _changed(task: Task, scored: Mapping[str, Any]) -> Points:
    """The points of a change, from cells by length and the last window, if it was scored."""
    cells = scored["cells"] | ({home(task): scored["last_window"]} if scored["last_window"] else {})
    return [
        (length, scale(task) * data["mean"], [scale(task) * seed for seed in data["seeds"].values()])
        for length in task["lengths"]
        if (data := cells.get(str(length))) and data.get("mean") is not None
    ]


def by_position(task: Task) -> Chart | None:
    """Loss by position in one long window."""
    if task["measure"] != "bits" or not task["causal"]:
        return None  # there, positions are not lengths: answers follow questions, or few positions have targets
    arms = [arm for arm in learnt(task) if arm["by_position"]]
    if not arms:
        return None
    series = [Series(title(arm["name"]), arm["name"], _plain(along(task, arm))) for arm in arms]
    if task["floor"]:
        series.append(Series(phrase("floor"), "", _plain(along(task, task["floor"])), LEVEL))
    return Chart(series, phrase("window position"), phrase("bits low"), phrase("positions"), trained=task["length"])


def learning(task: Task) -> Chart | None:
    """Training loss of all encodings, which shows whether more training might have helped."""
    drawn = [(arm["name"], list(zip(arm["curve"]["step"], arm["curve"]["bits"], strict=True))) for arm in _trained(task)]
    series = [Series(title(name), name, _plain(curve[:: -(-len(curve) // MOST_STEPS)])) for name, curve in drawn]
    described = say("{phrase}: {words}.", phrase=phrase("learning"), words=of(task["title"]))
    return Chart(series, phrase("step"), phrase("loss"), described) if series else None


def _trained(task: Task) -> list[Arm]:
    return [arm for arm in task["arms"] if arm["curve"] and arm["curve"]["step"]]


def _plain(curve: Sequence[tuple[float, float]]) -> Points:
    """A curve without single seeds."""
    return [(x, y, ()) for x, y in curve]


def pareto(findings: Findings, over: str) -> Chart | None:
    """Training time against `over`, factor or area, of the main task: a point for each encoding that learnt it."""
    task = main_task(findings)
    dots = []
    for arm in learnt(task):
        cost = ((findings["cost"] or {}).get("rows") or {}).get(arm["name"]) or {}
        if cost.get("training") and arm[over] is not None:
            quality = arm["factor"]["value"] if over == "factor" else scale(task) * arm["area"]
            dots.append((arm["name"], cost["training"]["median"], quality))
    if not dots:
        return None
    less = over == "area" and is_bits(task)
    series = [
        Series(
            _reached(task, name, over), name, [(*dot, ())], OFF if any(_beats(one, dot, less) for _, *one in dots) else ""
        )
        for name, *dot in dots
    ]
    unit = phrase("bits" if is_bits(task) else "exact")
    area = phrase("pareto area", unit=unit, better=phrase("less" if less else "more"))
    x, y = phrase("pareto time"), phrase("pareto factor") if over == "factor" else area
    return Chart(series, x, y, say("{words}; {words_2}", words=x, words_2=y), y_log=over == "factor")


def _reached(task: Task, name: str, over: str) -> Words:
    """A name, with ">8×" if the longest length was still valid."""
    arm = next(arm for arm in task["arms"] if arm["name"] == name)
    if over != "factor" or not arm["factor"]["censored"]:
        return title(name)
    return Words("{name} >{times}").filled(name=title(name), times=fold(arm["factor"]["value"]))


def _beats(first: Sequence[float], other: Sequence[float], less: bool) -> bool:
    """Whether one is at least as good in both measures and better in one."""
    time, other_time = first[0], other[0]
    good, other_good = (-first[1], -other[1]) if less else (first[1], other[1])
    return time <= other_time and good >= other_good and (time, good) != (other_time, other_good)


def strips(task: Task) -> Rows | None:
    """A chart of a task with a single length: all encodings, hollow if not learnt."""
    rows = []
    for arm in in_order(task):
        score = cell(task, arm, task["length"])
        if score.number is not None:
            seeds = [scale(task) * seed for seed in score.seeds]
            mean, ends = scale(task) * score.number, (min(seeds), max(seeds)) if seeds else (score.number,) * 2
            rows.append(Row(title(arm["name"]), arm["name"], mean, *ends, seeds, score.kind != "number"))
    if not rows:
        return None
    means = [end for row in rows for end in (row.low, row.high)]
    low, high = (min(means), max(means)) if is_bits(task) else PERCENT
    marks = [(y, level.name) for level in levels(task) for _, y, _ in level.points[:1]]
    beside = [(y, name) for y, name in marks if low - BESIDE * (high - low) <= y <= high + BESIDE * (high - low)]
    return Rows(rows, measured_in(task["measure"]), of(task["title"]), beside, None if is_bits(task) else PERCENT)
