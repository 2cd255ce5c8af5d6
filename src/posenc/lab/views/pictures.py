"""The same charts as PNG, for a README: curves of each task, the heat map of all, cost against length."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from posenc.lab.findings.titles import main_task
from posenc.lab.views import charts, svg
from posenc.lab.views.cells import (
    Findings,
    Task,
    arms_of,
    cell,
    fold,
    in_order,
    is_bits,
    top,
)
from posenc.lab.views.html import HEAT
from posenc.lab.views.page import shares
from posenc.lab.views.style import DASHES, LIGHT, label
from posenc.lab.views.words import say
from posenc.plots.style import GRID, INK, MUTED, mix

DPI = 160
LEADING = 0.21  # inches between two names
FONT = 9
LEFT, HEAD, WIDE, HIGH, WIDEST = 1.75, 1.0, 0.62, 0.36, 11.5  # inches, of the heat map


@matplotlib.rc_context({"text.parse_math": False})  # a dollar in somebody's name is a dollar
def pictures(findings: Findings) -> dict[str, bytes]:
    found = {f"curves-{task['name']}.png": _curves(findings, task) for task in findings["tasks"]}
    found["heat.png"] = _heat(findings)
    if any(charts.pareto(findings, over) for over in ("factor", "area")):
        found["pareto.png"] = _pareto(findings)
    return found


# Curves ---------------------------------------------------------------------------------------------------------------


def _curves(findings: Findings, task: Task) -> bytes:
    figure = Figure(figsize=(9, 5), facecolor="white")
    axes = figure.add_axes((0.07, 0.13, 0.66, 0.70))
    chart = charts.curves(findings, task)
    for one in chart.series if chart else ():
        colour, dash = one.kind.split()
        xs = [x for x, _, _ in one.points]
        axes.plot(xs, [y for _, y, _ in one.points], color=LIGHT[colour], linewidth=1.8, linestyle=_dashes(dash))
        axes.plot(
            [x for x, _, seeds in one.points for _ in seeds],
            [y for _, _, seeds in one.points for y in seeds],
            "o",
            color=LIGHT[colour],
            markersize=2.8,
        )
        axes.plot(
            [x for x, _ in one.rings],
            [y for _, y in one.rings],
            "o",
            color=LIGHT[colour],
            markersize=6,
            markerfacecolor="white",
        )
    _frame(axes, findings, task, chart)
    title_words = task["title"]["en"]
    heading = f"{title_words}: trained at {task['length']}" + (
        f", tested up to {max(task['lengths'])}" if top(task) > 1 else ""
    )
    figure.text(0.07, 0.93, heading, fontsize=14, color=INK, weight="bold")
    seeds = len(findings["seeds"])
    held = "the same targets at every length, " if is_bits(task) else ""
    note = f"posenc lab {findings['name']}: {held}{seeds} seeds, every dot is one"
    figure.text(0.07, 0.885, note, fontsize=FONT, color=MUTED)
    return _written(figure)


def _frame(axes: Any, findings: Findings, task: Task, chart: svg.Chart | None) -> None:
    lengths = task["lengths"]
    axes.set_xscale("log", base=2)
    _ticks(axes.xaxis, [(length, str(length)) for length in lengths])
    axes.set_xlim(lengths[0] * 0.94, lengths[-1] * 1.06)
    axes.axvline(task["length"], color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=0)
    axes.annotate(
        "trained length",
        (task["length"], 1),
        xycoords=("data", "axes fraction"),
        xytext=(3, 3),
        textcoords="offset points",
        fontsize=8,
        color=MUTED,
    )
    _plain(axes, task["unit"]["en"], say("bits low" if is_bits(task) else "exact high").en)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    if not is_bits(task):
        axes.set_ylim(-2, 102)
    if chart is None:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not learnt at this budget by any", transform=axes.transAxes, ha="center", color=MUTED)
        return
    low, high = axes.get_ylim()
    for one in chart.levels:
        if all(low <= y <= high for _, y in one.points):
            axes.plot(*zip(*one.points, strict=True), color=MUTED, linewidth=1.2, linestyle=(0, (1, 3)), zorder=0)
            axes.annotate(one.words.en, one.points[0], xytext=(5, 4), textcoords="offset points", fontsize=8, color=MUTED)
    axes.set_ylim(low, high)
    _names(axes, chart.series, (high - low) / (5 * 0.70), (low, high))


def _names(axes: Any, series: Sequence[svg.Series], inch: float, span: tuple[float, float]) -> None:
    """At the right, a line apart from each other."""
    ends = [one.points[-1] for one in series]
    last = max(x for x, _, _ in ends)
    heights = svg.spaced([mean for _, mean, _ in ends], LEADING * inch, span[0], span[1] + 0.3 * inch)
    for one, (x, mean, _), height in zip(series, ends, heights, strict=True):
        colour = LIGHT[one.kind.split()[0]]
        axes.annotate(
            f"{one.name.en}  {one.note.en}".rstrip(),
            (x, mean),
            xytext=(1.05, height),
            va="center",
            fontsize=FONT,
            color=colour,
            textcoords=("axes fraction", "data"),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "alpha": 0.35,
                "linewidth": 0.8,
                "relpos": (0, 0.5),
                "linestyle": "-" if x == last else ":",
            },
        )


# Heat map -------------------------------------------------------------------------------------------------------------


def _heat(findings: Findings) -> bytes:
    """All tasks, as many side by side as fit, the encodings in the order of the main one."""
    names = [arm["name"] for arm in in_order(main_task(findings))]
    names += [name for name in arms_of(findings) if name not in names]
    lines: list[list[Task]] = [[]]
    for task in findings["tasks"]:
        if lines[-1] and LEFT + sum(map(_wide, [*lines[-1], task])) > WIDEST:
            lines.append([])
        lines[-1].append(task)
    width = max(LEFT + sum(map(_wide, line)) for line in lines)
    pitch = HEAD + HIGH * len(names) + 0.2
    height = pitch * len(lines) + 0.3
    figure = Figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    for n, line in enumerate(lines):
        _blocks(axes, line, names, n * pitch)
    note = "Hatched: not learnt at this budget; nothing is said beyond the trained length, 1×."
    axes.text(0.15, height - 0.15, note, fontsize=7.5, color=MUTED)
    return _written(figure)


def _blocks(axes: Any, tasks: Sequence[Task], names: Sequence[str], above: float) -> None:
    top_row = above + HEAD
    for n, name in enumerate(names):
        axes.text(LEFT - 0.1, top_row + HIGH * (n + 0.5), label(name).en, ha="right", va="center", fontsize=FONT, color=INK)
    start = LEFT
    for task in tasks:
        lines = textwrap.wrap(task["title"]["en"], int((_wide(task) - 0.1) * 11))[:2]
        axes.text(start, above + 0.56, "\n".join(lines), fontsize=FONT, weight="bold", color=INK, va="bottom")
        axes.text(start, above + 0.72, say("bits" if is_bits(task) else "exact").en, fontsize=7.5, color=MUTED)
        by_name = {arm["name"]: arm for arm in task["arms"]}
        for column, length in enumerate(task["lengths"]):
            x = start + column * WIDE
            axes.text(x + WIDE / 2, top_row - 0.08, fold(length / task["length"]), ha="center", fontsize=7.5, color=MUTED)
            for row, name in enumerate(names):
                if name in by_name:
                    _square(axes, task, by_name[name], length, (x, top_row + HIGH * row, WIDE, HIGH))
        start += _wide(task)


def _wide(task: Task) -> float:
    """Its columns, or enough for its name."""
    return max(len(task["lengths"]) * WIDE, 1.5) + 0.3


def _square(axes: Any, task: Task, arm: Any, length: int, box: tuple[float, float, float, float]) -> None:
    x, y, wide, high = box
    found = cell(task, arm, length)
    middle = {"ha": "center", "va": "center", "fontsize": 8}
    size = ((x + 0.02, y + 0.02), wide - 0.04, high - 0.04)
    if found.kind == "number" and found.number is not None:
        share = shares(task)(found.number)
        axes.add_patch(Rectangle(*size, facecolor=mix(HEAT, share), edgecolor="none"))
        axes.text(x + wide / 2, y + high / 2, found.words.en, color="white" if share > 0.55 else INK, **middle)
    elif found.kind == "not learnt":
        axes.add_patch(Rectangle(*size, facecolor="white", edgecolor="#c4c8d0", hatch="////", linewidth=0))
        if found.number is not None:
            axes.text(
                x + wide / 2,
                y + high / 2,
                found.words.en,
                color=INK,
                **middle,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
    else:
        axes.add_patch(Rectangle(*size, facecolor="none", edgecolor="#b4b8c0", linewidth=0.7, linestyle=(0, (3, 2))))
        axes.text(x + wide / 2, y + high / 2, found.kind, color=MUTED, **(middle | {"fontsize": 7}))


# Cost against length --------------------------------------------------------------------------------------------------


def _pareto(findings: Findings) -> bytes:
    figure = Figure(figsize=(11, 4.8), facecolor="white")
    figure.text(0.05, 0.93, "What length costs", fontsize=14, color=INK, weight="bold")
    task = main_task(findings)["title"]["en"]
    note = f"posenc lab {findings['name']}: {task}; full dots: no other is both faster to train and better"
    figure.text(0.05, 0.88, note, fontsize=FONT, color=MUTED)
    for place, over in enumerate(("factor", "area")):
        if made := charts.pareto(findings, over):
            _spots(figure.add_axes((0.05 + 0.5 * place, 0.13, 0.43, 0.68)), *made)
    return _written(figure)


def _spots(axes: Any, spots: Sequence[svg.Spot], x: svg.Axis, y: svg.Axis) -> None:
    wide, high = 11 * 0.43 * 72, 4.8 * 0.68 * 72  # points
    frame = svg.Frame(0.03 * wide, 0.97 * wide, 0.04 * high, 0.96 * high, x.range, y.range, x.log, y.log)
    kept = [x.ticks[n] for n in svg.apart([frame.x(tick) for tick, _ in x.ticks], 26)]
    for axis, one, ticks, scale in ((axes.xaxis, x, kept, axes.set_xscale), (axes.yaxis, y, y.ticks, axes.set_yscale)):
        if one.log:
            scale("log", base=2)
        _ticks(axis, ticks)
    for limit, one, room in ((axes.set_xlim, x, 0.03), (axes.set_ylim, y, 0.04)):
        limit(*_widened(one, room / (1 - 2 * room)))
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    _plain(axes, x.words.en, y.words.en)
    dots = [(frame.x(spot.x[1]), frame.y(spot.y[1])) for spot in spots]
    sizes = [(0.56 * FONT * svg.written(spot.name.en), 1.2 * FONT) for spot in spots]
    places = svg.beside(dots, sizes, (0, 0, wide, high), svg.bars(frame, spots))
    for spot, dot, (left, above), size in zip(spots, dots, places, sizes, strict=True):
        colour = LIGHT[spot.kind.split()[0]]
        bar = {"color": colour, "linewidth": 2.4, "alpha": 0.45, "clip_on": False}
        axes.plot([spot.x[0], spot.x[2]], [spot.y[1]] * 2, **bar)
        axes.plot([spot.x[1]] * 2, [spot.y[0], spot.y[2]], **bar)
        face = colour if spot.front else "white"
        axes.plot(spot.x[1], spot.y[1], "o", color=colour, markersize=7, markerfacecolor=face, clip_on=False)
        middle = left + size[0] / 2, above + size[1] / 2
        far = math.dist(middle, dot) > size[0] / 2 + 16
        axes.annotate(
            spot.name.en,
            (spot.x[1], spot.y[1]),
            xytext=(middle[0] - dot[0], dot[1] - middle[1]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT,
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.35} if far else None,
        )


def _widened(axis: svg.Axis, room: float) -> tuple[float, float]:
    """The range and `room` of it on either side."""
    low, high = axis.range
    if axis.log:
        factor = (high / low) ** room
        return low / factor, high * factor
    return low - room * (high - low), high + room * (high - low)


# Pieces ---------------------------------------------------------------------------------------------------------------


def _dashes(name: str) -> Any:
    return (0, tuple(length / 1.8 for length in DASHES[name])) if DASHES[name] else "-"


def _ticks(axis: Any, ticks: Sequence[tuple[float, str]]) -> None:
    words = dict(ticks)
    axis.set_major_locator(FixedLocator([tick for tick, _ in ticks]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: words.get(min(words, key=lambda tick: abs(tick - value)), "")))


def _plain(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x, color=MUTED, fontsize=FONT)
    axes.set_ylabel(y, color=MUTED, fontsize=FONT)
    axes.tick_params(colors=MUTED, labelsize=FONT, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _written(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()
