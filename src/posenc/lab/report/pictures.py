"""The charts that Markdown shows, as SVG files in each language, drawn by matplotlib.

curves-TASK.svg, curves-TASK.zh-CN.svg     quality against length; with one length, one dot for each seed
pareto-factor.svg, pareto-area.svg, …      cost against quality
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from posenc.lab.findings.titles import main_task
from posenc.lab.findings.wording import counted_seeds
from posenc.lab.records.files import named
from posenc.lab.report import charts
from posenc.lab.report.cells import Findings, Task, arms_of, learnt, top
from posenc.lab.report.chart import Chart, Rows
from posenc.lab.report.style import COLOURS, look
from posenc.lab.report.words import of, phrase
from posenc.lab.say import say
from posenc.pictures.plots.style import GRID, INK, MUTED
from posenc.support.languages import Language, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDING: dict[Language, str] = {"en": "", "zh": ".zh-CN"}
FONTS = ["system-ui", "Segoe UI", "Roboto", "Noto Sans", "PingFang SC", "Microsoft YaHei", "DejaVu Sans"]
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "posenc",
    "font.family": "sans-serif",
    "font.sans-serif": FONTS,
}


def pictures(findings: Findings) -> dict[str, bytes]:
    """The SVG files by name."""
    names = arms_of(findings)
    return {
        f"{name}{ENDING[language]}.svg": _file(
            chart, names, title.in_language(language), note.in_language(language), language
        )
        for name, chart, title, note in [*_curves(findings), *_pareto(findings)]
        for language in ENDING
    }


def curves_of(findings: Findings, task: Task) -> Chart | Rows | None:
    """Quality against length of the encodings that learnt the task.

    Of a task with one length, or that no encoding learnt, that length alone. None if there is no score.
    """
    return charts.curves(findings, task) if len(task["lengths"]) > 1 and learnt(task) else charts.strips(task)


def _file(chart: Chart | Rows, names: Sequence[str], title: str, note: str, language: Language) -> bytes:
    """The same numbers give the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    lines = len(chart.series) if isinstance(chart, Chart) else len(chart.rows)
    sheet = Figure(figsize=(9.4, max(4.8, 1.6 + 0.2 * lines)), facecolor="white")
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Chinese is in the fonts of who looks at the file
        axes = sheet.add_axes((0.07, 0.11, 0.63, 0.75) if isinstance(chart, Chart) else (0.26, 0.13, 0.7, 0.73))
        _titled(sheet, title, note)
        if isinstance(chart, Chart):
            draw(axes, chart, names, language)
        else:
            _draw_rows(axes, chart, names, language)
        return saved(sheet, "svg", {"Date": None})


def _titled(sheet: Figure, title: str, note: str) -> None:
    sheet.text(0.02, 0.955, title, fontsize=13, fontweight="bold", color=INK, parse_math=False)
    sheet.text(0.02, 0.91, note, fontsize=9, color=MUTED, parse_math=False)


def saved(sheet: Figure, form: str, dateless: dict[str, None]) -> bytes:
    sink = io.BytesIO()
    sheet.savefig(sink, format=form, metadata=dateless)
    return sink.getvalue()


def draw(axes: Axes, chart: Chart, names: Sequence[str], language: Language, thick: str | None = None) -> None:
    """The curves with a dot for every seed, named beside the axes; that of the arm `thick` is thick."""
    alone = all(len(series.points) == 1 for series in chart.series)
    for place, series in enumerate(chart.series):
        style = look(series.arm, names) if series.arm else None
        colour, dash = (COLOURS[style.colour], style.dash) if style else (MUTED, (0, (1, 3)))
        name = f"{series.name.in_language(language)} {series.note.in_language(language)}".rstrip()
        x, y, _ = zip(*series.points, strict=True)
        newcomer = bool(series.arm) and series.arm == thick
        kept: dict[str, Any] = {
            "color": colour,
            "label": name,
            "linewidth": 2.6 if newcomer else 1.4,
            "zorder": 2 + newcomer,
        }
        if len(x) > 1 or not series.arm:
            axes.plot(x, y, linestyle=dash, **kept)
        else:
            axes.plot(x, y, "o", markersize=6, markerfacecolor="white" if series.kind == charts.OFF else colour, **kept)
        if alone:
            by = (7, -11 if place % 2 else 4)
            axes.annotate(
                name, (x[0], y[0]), xytext=by, textcoords="offset points", color=colour, fontsize=8, parse_math=False
            )
        dots = [(at, seed) for at, _, seeds in series.points for seed in seeds]
        if dots:
            axes.plot(*zip(*dots, strict=True), ".", color=colour, markersize=3.5, alpha=0.6)
    if chart.ticks:
        axes.set_xscale("log", base=2)
        axes.set_xticks(chart.ticks, [f"{tick:g}" for tick in chart.ticks])
    if chart.y_log:
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.minorticks_off()
    if chart.y_range:
        axes.set_ylim(chart.y_range[0] - 2, chart.y_range[1] + 2)
    if chart.trained is not None:
        axes.axvline(chart.trained, color=MUTED, linewidth=0.8, linestyle="--", zorder=0)
    _axes(axes, chart.x.in_language(language), chart.y.in_language(language))
    if alone:
        axes.margins(0.12)
    else:
        legend = axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        for text in legend.get_texts():
            text.set_parse_math(False)


def _draw_rows(axes: Axes, chart: Rows, names: Sequence[str], language: Language) -> None:
    for place, row in enumerate(chart.rows):
        colour = COLOURS[look(row.arm, names).colour]
        axes.plot([row.value] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2)
        filled = "white" if row.hollow else colour
        axes.plot(row.seeds, [place] * len(row.seeds), "o", color=colour, markerfacecolor=filled, markersize=5)
    for at, words in chart.marks:
        axes.axvline(at, color=MUTED, linewidth=1, linestyle=":")
        axes.annotate(
            words.in_language(language), (at, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8
        )
    axes.set_yticks(range(len(chart.rows)), [row.name.in_language(language) for row in chart.rows])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.invert_yaxis()
    if chart.x_range:
        axes.set_xlim(chart.x_range[0] - 2, chart.x_range[1] + 2)
    _axes(axes, chart.x.in_language(language), "")


def _axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, color=MUTED, parse_math=False)
    axes.set_ylabel(y, color=MUTED, parse_math=False)
    axes.tick_params(which="both", labelsize=8, colors=MUTED)
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _curves(findings: Findings) -> Iterator[tuple[str, Chart | Rows, Words, Words]]:
    seeds = counted_seeds(findings)
    note = say("posenc lab {name}: every dot is one seed; {seeds} each", name=findings["name"], seeds=seeds)
    for task in findings["tasks"]:
        if chart := curves_of(findings, task):
            called, trained, far = of(task["title"]), task["length"], max(task["lengths"])
            tested = say(", tested up to {far}", far=far) if top(task) > 1 else Words("")
            title = say("{called}: trained at length {trained}{tested}", called=called, trained=trained, tested=tested)
            yield f"curves-{named(task['name'])}", chart, title, note


def _pareto(findings: Findings) -> Iterator[tuple[str, Chart | Rows, Words, Words]]:
    called = of(main_task(findings)["title"])
    note = say("{called}; filled dots: no other encoding is both faster to train and better", called=called)
    for over in ("factor", "area"):
        if chart := charts.pareto(findings, over):
            yield f"pareto-{over}", chart, phrase("pareto"), note
