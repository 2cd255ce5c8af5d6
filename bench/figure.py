"""A picture of one benchmark: a panel for each comparison, a dot for the median ratio, a line between the quartiles."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posenc.pictures.plots.style import GRID, INK, LINES, MUTED, line_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 2


@dataclass(frozen=True)
class Panel:
    title: str
    floor: str
    rows: list[tuple[str, float, float, float, bool]]  # name, quartile, median, quartile, ours


def draw(panels: list[Panel], form: str) -> bytes:
    """The file's content; `form` is "png" or "svg". Needs matplotlib."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    deep = -(-len(panels) // COLUMNS)
    heights = [max(len(panel.rows) for panel in panels[row * COLUMNS : (row + 1) * COLUMNS]) for row in range(deep)]
    canvas = Figure(figsize=(13, sum(heights) * 0.26 + deep * 0.95), layout="constrained")
    axes = canvas.subplots(deep, COLUMNS, squeeze=False, height_ratios=[height + 2 for height in heights])
    for number, spot in enumerate(axes.flat):
        if number >= len(panels):
            spot.set_axis_off()
            continue
        panel = panels[number]
        for place, (_, low, median, high, ours) in enumerate(panel.rows):
            colour = LINES[1] if ours else LINES[0]
            spot.plot([low, high], [place, place], color=colour, linewidth=2.5, alpha=0.45, solid_capstyle="round")
            spot.plot([median], [place], marker="o", color=colour, markersize=5)
            spot.annotate(
                f"{median:.3g}",
                (high, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
        spot.axvline(1, color=MUTED, linewidth=1, linestyle="--")
        spot.set_xscale("log")
        spot.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        spot.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        spot.xaxis.set_minor_formatter(NullFormatter())
        spot.margins(x=0.18)
        spot.set_yticks(range(len(panel.rows)), [row[0] for row in panel.rows], fontsize=9)
        for label, row in zip(spot.get_yticklabels(), panel.rows, strict=True):
            label.set_color(LINES[1] if row[4] else INK)
        spot.set_ylim(-0.7, len(panel.rows) - 0.3)
        spot.set_title(panel.title, fontsize=10, loc="left", color=INK)
        spot.set_xlabel(f"time over that of: {panel.floor}", fontsize=8, color=MUTED)
        spot.tick_params(axis="x", which="both", labelsize=8, colors=MUTED)
        spot.grid(axis="x", which="major", color=GRID)
        for side in ("top", "right", "left"):
            spot.spines[side].set_visible(False)
    return _saved(canvas, form)


@dataclass(frozen=True)
class Curves:
    title: str
    grows: str
    lines: dict[str, tuple[bool, list[tuple[float, float]]]]  # name: ours, (size, milliseconds)


def draw_curves(panels: list[Curves], form: str) -> bytes:
    """Milliseconds over sizes, both axes logarithmic; ours drawn thicker."""
    from matplotlib.figure import Figure

    deep = -(-len(panels) // COLUMNS)
    canvas = Figure(figsize=(13, 4 * deep), layout="constrained")
    for spot, panel in itertools.zip_longest(canvas.subplots(deep, COLUMNS, squeeze=False).flat, panels):
        if panel is None:
            spot.set_axis_off()
            continue
        for number, (name, (ours, points)) in enumerate(panel.lines.items()):
            colour = line_colour(number, len(panel.lines))
            spot.plot(
                *zip(*points, strict=True),
                marker="o",
                markersize=4,
                color=colour,
                linewidth=2.5 if ours else 1.2,
                label=name,
            )
        spot.set_xscale("log", base=2)
        spot.set_yscale("log")
        spot.set_xticks(
            sizes := sorted({size for _, points in panel.lines.values() for size, _ in points}), [f"{x:g}" for x in sizes]
        )
        spot.set_title(panel.title, fontsize=9, loc="left", color=INK)
        spot.set_xlabel(panel.grows, fontsize=8, color=MUTED)
        spot.set_ylabel("milliseconds", fontsize=8, color=MUTED)
        spot.grid(which="major", color=GRID)
        spot.tick_params(which="both", labelsize=8, colors=MUTED)
        spot.legend(fontsize=8, frameon=False)
        for side in ("top", "right"):
            spot.spines[side].set_visible(False)
    return _saved(canvas, form)


def _saved(canvas: Figure, form: str) -> bytes:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "posenc"}):
        canvas.savefig(buffer, format=form, dpi=150, facecolor="white", metadata={"Date": None} if form == "svg" else None)
    return buffer.getvalue()
