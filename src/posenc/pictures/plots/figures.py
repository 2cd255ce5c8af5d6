"""Pictures drawn by matplotlib: no pyplot, no global state, a Figure for each."""

from __future__ import annotations

import math
import textwrap
from functools import singledispatch
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import torch

from posenc.pictures.plots.picture import Bars, Clocks, Curves, Line, Matrices, Path, Picture, number, rounded
from posenc.pictures.plots.style import CYCLIC, DIVERGING, GRID, INK, LINES, MUTED, NOTHING, PAIRED, SEQUENCE, line_colour
from posenc.support.checked import checked
from posenc.support.extras import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
DPI = 160
LEADER = {"arrowstyle": "-", "color": INK, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 3}  # from a mark to its words


@checked
def figure(picture: Picture) -> Figure:
    """The picture as a matplotlib Figure. Raises ModuleNotFoundError without matplotlib."""
    return _figure(picture)


@singledispatch
def _figure(picture: Picture) -> Figure:
    raise TypeError(f"picture: there is no way to draw a {type(picture).__name__}")


@checked
def save(picture: Picture, path: FilePath) -> None:
    """The picture as a file; the suffix of `path` says which format."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"{path.name}: expected a name that ends in {', '.join(FORMATS)}")
    dateless = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    drawn = figure(picture)
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "posenc"}):  # the same picture, the same file
        drawn.savefig(path, format=kind[1:], dpi=DPI, metadata=dateless[kind])


@_figure.register(Matrices)
def _matrices(picture: Matrices) -> Figure:
    count = len(picture.panels)
    across = min(count, 4 if count > 4 else count if count < 4 else 2)
    down = math.ceil(count / across)
    rows, columns = picture.panels[0].values.shape
    wide = 8.6 if count == 1 else 2.6 * across + 1.2
    tall = (min(max(rows / columns * 7.0, 2.4), 6.6) if count == 1 else 2.55 * down) + 0.65
    canvas = _canvas(picture, wide, tall)
    from matplotlib.ticker import MaxNLocator

    grid = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    low, high = (0.0, picture.limit) if picture.cyclic else (-1.0, 1.0)
    colours = _map("ring", CYCLIC) if picture.cyclic else _map("diverging", DIVERGING)
    for n, axes in enumerate(grid.flat):
        if n >= count:
            axes.set_visible(False)
            continue
        panel = picture.panels[n]
        image = axes.imshow(
            (panel.values if picture.cyclic else picture.on_the_scale(panel.values)).numpy(),
            cmap=colours,
            vmin=low,
            vmax=high,
            interpolation="nearest",
            aspect="auto" if count == 1 else "equal",
        )
        axes.set_facecolor(NOTHING)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(8 if count == 1 else 4, integer=True))
        _plain(axes)
        axes.set_title(panel.title, fontsize=9, color=INK, loc="left")
        if n >= count - across:
            axes.set_xlabel(picture.columns)
            axes.tick_params(labelbottom=True)
        if n % across == 0:
            axes.set_ylabel(picture.rows)
    beyond = any(bool((panel.values.abs() > picture.limit).any()) for panel in picture.panels)
    bar = canvas.colorbar(
        image, ax=list(grid.flat), fraction=0.03, pad=0.02, aspect=30, extend="both" if beyond else "neither"
    )
    bar.outline.set_visible(False)
    bar.set_label(picture.unit, color=MUTED, fontsize=9)
    if picture.cyclic:
        bar.set_ticks([0, math.pi / 2, math.pi, 3 * math.pi / 2, 2 * math.pi], labels=["0", "π/2", "π", "3π/2", "2π"])
    else:
        places = picture.on_the_scale(torch.tensor(picture.ticks, dtype=torch.float64)).tolist()
        bar.set_ticks(places, labels=[("+" if value > 0 else "") + number(value) for value in picture.ticks])
    bar.ax.tick_params(length=0, labelsize=8.5, colors=MUTED)
    return canvas


@_figure.register(Curves)
def _curves(picture: Curves) -> Figure:
    if picture.stacked:
        return _stacked(picture)
    canvas = _canvas(picture, 8.6, 3.8)
    axes = canvas.subplots()
    for n, line in enumerate(picture.lines):
        _draw(axes, line, line_colour(n, len(picture.lines)))
    if picture.log_x:
        axes.set_xscale("log")
    if picture.log_y:
        axes.set_yscale("log")
    elif any(float(line.y.min()) < 0 for line in picture.lines):
        axes.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    for mark in picture.marks:
        below = mark.y < max(other.y for other in picture.marks)  # the words of two marks keep apart
        axes.plot([mark.x], [mark.y], "o", color=INK, markersize=4.5, zorder=5)
        axes.annotate(
            mark.text,
            (mark.x, mark.y),
            (8, -58) if below else (12, 14),
            fontsize=8.5,
            textcoords="offset points",
            color=INK,
            zorder=6,
            path_effects=_halo(),
            arrowprops=LEADER,
        )
    if picture.rule is not None:
        axes.axhline(picture.rule.y, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        axes.annotate(
            picture.rule.text,
            (0, picture.rule.y),
            (4, 4),
            textcoords="offset points",
            fontsize=8.5,
            xycoords=axes.get_yaxis_transform(),
            color=INK,
        )
    axes.set_xlabel(picture.x)
    axes.set_ylabel(picture.y)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.margins(x=0.02)
    _open(axes)
    if len(picture.lines) > 1:
        _legend(canvas, min(4, len(picture.lines)))
    return canvas


def _stacked(picture: Curves) -> Figure:
    count = len(picture.lines)
    canvas = _canvas(picture, 8.6, 0.6 + 1.2 * count)
    grid = canvas.subplots(count, 1, squeeze=False, sharex=True, sharey=True)
    for n, (axes, line) in enumerate(zip(grid.flat, picture.lines, strict=True)):
        _draw(axes, line, line_colour(n, count))
        axes.set_title(line.name, fontsize=9, color=INK, loc="left")
        axes.set_ylabel(picture.y)
        axes.axhline(0, color=GRID, linewidth=0.8, zorder=1)
        axes.margins(x=0.01)
        _open(axes)
    axes.set_xlabel(picture.x)
    return canvas


def _draw(axes: Axes, line: Line, colour: str) -> None:
    style: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 4.5} if line.points else {"linewidth": 1.5}
    axes.plot(line.x.numpy(), line.y.numpy(), color=colour, label=line.name, **style)


@_figure.register(Bars)
def _bars(picture: Bars) -> Figure:
    groups, names = len(picture.groups), len(picture.names)
    canvas = _canvas(picture, 8.6, 1.1 + 0.36 * names + 0.17 * names * (groups - 1))
    axes = canvas.subplots()
    thick = 0.8 / groups
    for n, group in enumerate(picture.groups):
        for row, value in enumerate(group.values):
            place = row - 0.4 + thick * (n + 0.5)
            if value is None:
                if n == _first_none(picture, row):
                    axes.annotate(
                        picture.absent,
                        (picture.floor, place),
                        (4, 0),
                        va="center",
                        textcoords="offset points",
                        fontsize=7.5,
                        color=MUTED,
                    )
                continue
            colour = (LINES[1] if value > 0 else LINES[0]) if picture.signed else PAIRED[n % len(PAIRED)]
            size, first = max(abs(value), picture.floor), row == _first(group.values)
            axes.barh(
                place,
                size - picture.floor,
                thick * 0.86,
                left=picture.floor,
                color=colour,
                label=group.label if first and not picture.signed else None,
            )
            axes.annotate(
                rounded(value),
                (size, place),
                (4, 0),
                va="center",
                textcoords="offset points",
                fontsize=7 if groups > 1 else 8.5,
                color=MUTED,
            )
    axes.set_xscale("log")
    axes.set_xlim(left=picture.floor)
    axes.set_ylim(names - 0.45, -0.55)
    axes.set_yticks(range(names), picture.names)
    axes.set_xlabel(picture.unit + ("   (red adds, blue takes away)" if picture.signed else ""))
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.12)
    _open(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", labelsize=9, colors=INK)
    if not picture.signed:
        _legend(canvas, groups)
    return canvas


@_figure.register(Clocks)
def _clocks(picture: Clocks) -> Figure:
    from matplotlib.patches import Circle

    down, across = picture.angles.shape
    canvas = _canvas(picture, 1.2 + 0.85 * across, 0.8 + 0.85 * down)
    axes = canvas.subplots()
    for row in range(down):
        for column in range(across):
            angle = float(picture.angles[row, column])
            axes.add_patch(Circle((column, row), 0.38, facecolor="white", edgecolor=GRID, linewidth=1.4))
            axes.plot([column, column], [row - 0.38, row - 0.32], color=MUTED, linewidth=0.9)
            tip = (column + 0.33 * math.sin(angle), row - 0.33 * math.cos(angle))
            axes.plot([column, tip[0]], [row, tip[1]], color=LINES[0], linewidth=1.9, solid_capstyle="round")
            axes.plot([tip[0]], [tip[1]], "o", color=LINES[1], markersize=3.6)
    axes.set_xlim(-0.6, across - 0.4)
    axes.set_ylim(down - 0.45, -0.55)
    axes.set_aspect("equal")
    axes.set_xticks(
        range(across),
        [f"pair {pair}\nλ {number(wave)}" for pair, wave in zip(picture.pairs, picture.wavelengths, strict=True)],
    )
    axes.set_yticks(range(down), [f"{position}" for position in picture.positions])
    axes.xaxis.tick_top()
    axes.set_ylabel("position")
    _plain(axes)
    axes.tick_params(axis="x", labelsize=8.5)
    return canvas


@_figure.register(Path)
def _path(picture: Path) -> Figure:
    from matplotlib.collections import LineCollection

    canvas = _canvas(picture, 7.6, 5.4)
    axes = canvas.subplots()
    points = picture.points.numpy()
    last = len(points) - 1
    segments = [points[n : n + 2] for n in range(last)]
    walk = LineCollection(segments, cmap=_map("sequence", SEQUENCE), linewidths=2.0, capstyle="round")
    walk.set_array(list(range(last)))
    axes.add_collection(walk)
    axes.autoscale_view()
    axes.margins(0.08)
    for n in (0, last):
        axes.plot(*points[n], "o", color=INK, markersize=5, zorder=4)
        axes.annotate(f"position {n}", points[n], (7, 6), textcoords="offset points", fontsize=8.5, color=INK)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("first principal axis")
    axes.set_ylabel("second principal axis")
    axes.grid(color=GRID, linewidth=0.8)
    _open(axes)
    bar = canvas.colorbar(walk, ax=axes, fraction=0.03, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label("position", color=MUTED, fontsize=9)
    bar.ax.tick_params(length=0, labelsize=8.5, colors=MUTED)
    return canvas


def _canvas(picture: Picture, wide: float, tall: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise missing("matplotlib", what="a picture in a file") from error
    title = textwrap.wrap(picture.title, int(wide * 10.5))
    idea = [line for sentence in picture.idea for line in textwrap.wrap(sentence, int(wide * 15.5))]
    header = 0.34 + 0.2 * len(title) + 0.165 * len(idea)  # inches
    canvas = Figure(figsize=(wide, tall + header), facecolor="white")
    tall += header
    canvas.set_layout_engine("constrained", w_pad=0.12, h_pad=0.1, rect=(0, 0, 1, 1 - header / tall))
    canvas.text(0.16 / wide, 1 - 0.16 / tall, "\n".join(title), fontsize=12, fontweight="bold", color=INK, va="top")
    canvas.text(
        0.16 / wide,
        1 - (0.24 + 0.2 * len(title)) / tall,
        "\n".join(idea),
        fontsize=8.5,
        color=MUTED,
        va="top",
        linespacing=1.35,
    )
    return canvas


def _legend(canvas: Figure, columns: int) -> None:
    canvas.legend(loc="outside lower left", ncols=columns, frameon=False, fontsize=8.5, labelcolor=INK, handlelength=1.4)


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground="white")]


def _plain(axes: Axes) -> None:
    """No frame, no tick marks: the picture has edges of its own."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, labelsize=8.5, colors=MUTED)
    _label_colour(axes)


def _open(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GRID)
    axes.tick_params(which="both", length=0, labelsize=8.5, colors=MUTED)
    _label_colour(axes)


def _label_colour(axes: Axes) -> None:
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(MUTED)
        axis.label.set_fontsize(9)


def _map(name: str, anchors: tuple[str, ...]) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, list(anchors), N=512).with_extremes(bad=NOTHING)


def _first(values: tuple[float | None, ...]) -> int:
    return next((n for n, value in enumerate(values) if value is not None), -1)


def _first_none(picture: Bars, row: int) -> int:
    return next((n for n, group in enumerate(picture.groups) if group.values[row] is None), -1)
