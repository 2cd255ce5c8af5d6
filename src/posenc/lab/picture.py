"""The curves as a PNG, for a README: the same numbers as in the page."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from posenc.lab.summary import title
from posenc.lab.views.svg import spaced
from posenc.plots.style import GRID, INK, MUTED

COLOURS = {"flat": "#16816f", "fades": "#b97a10", "breaks": "#c23b36", "home": "#2a62b0"}
WIDTH, HEIGHT, DPI = 9.0, 5.0, 160
LEADING = 0.21  # inches between two names


def picture(done: Mapping[str, Any]) -> bytes:
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    axes = figure.add_axes((0.07, 0.13, 0.66, 0.70))
    lengths = done["recipe"]["lengths"]
    rows = [row for row in done["rows"] if row["learnt"]]
    ends = []
    for row in rows:
        cells = [(n, row["bits"][str(n)]) for n in lengths if "mean" in row["bits"][str(n)]]
        colour = COLOURS[row["behaviour"] or "home"]
        axes.plot(
            [n for n, _ in cells],
            [cell["mean"] for _, cell in cells],
            color=colour,
            linewidth=1.8,
            linestyle=(0, (4, 2)) if row["behaviour"] == "fades" else "-",
        )
        dots = [(length, seed) for length, cell in cells for seed in cell["seeds"]]
        axes.plot(*zip(*dots, strict=True), "o", color=colour, markersize=2.8)
        ends.append((row, cells[-1][0], cells[-1][1]["mean"], colour))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.set_xlim(lengths[0] * 0.94, lengths[-1] * 1.03)
    axes.axvline(lengths[0], color=MUTED, linewidth=1, linestyle=(0, (3, 3)), zorder=0)
    axes.axhline(done["byte_pairs"], color=MUTED, linewidth=1.2, linestyle=(0, (1, 3)), zorder=0)
    axes.annotate(
        "knowing only the byte before",
        (1, done["byte_pairs"]),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=MUTED,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
    )
    axes.annotate(
        "trained length",
        (lengths[0], 1),
        xycoords=("data", "axes fraction"),
        xytext=(3, 3),
        textcoords="offset points",
        fontsize=8,
        color=MUTED,
    )
    axes.set_xlabel("bytes of context", color=MUTED, fontsize=9)
    axes.set_ylabel("bits per byte", color=MUTED, fontsize=9)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(colors=MUTED, labelsize=9, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _names(axes, ends, str(lengths[-1]))
    figure.text(
        0.07, 0.93, f"Trained at {lengths[0]} bytes, read up to {lengths[-1]}", fontsize=14, color=INK, weight="bold"
    )
    figure.text(
        0.07,
        0.885,
        f"posenc compare: bits per byte on the same target bytes, {done['text']['source']}, "
        f"{done['steps']} steps, {len(done['settings']['seeds'])} seeds",
        fontsize=9,
        color=MUTED,
    )
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


def _names(axes: Any, ends: list[Any], far: str) -> None:
    """At the right, a line apart from each other."""
    low, high = axes.get_ylim()
    inch = (high - low) / (HEIGHT * 0.70)
    heights = spaced([mean for _, _, mean, _ in ends], LEADING * inch, low, high + 0.3 * inch)
    for (row, length, mean, colour), height in zip(ends, heights, strict=True):
        note = f"{row['rise'][far]:+.2f}" if far in row["rise"] else f"ends at {length}"
        axes.annotate(
            f"{title(row).en}  {note}",
            (length, mean),
            xytext=(1.05, height),
            va="center",
            fontsize=9,
            color=colour,
            textcoords=("axes fraction", "data"),
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.35, "linewidth": 0.8, "relpos": (0, 0.5)},
        )
