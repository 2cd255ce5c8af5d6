"""The results for people: tables in the terminal and as Markdown, a figure, and the folder that holds them.

A row is a contender, a column a setting (allocator and threads); a cell is the ratio to the floor with its quartiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import log2
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

from bench.peers import NOT_ASKED

if TYPE_CHECKING:
    from rich.console import Console

    from bench.figure import Curves, Panel

Result = dict[str, Any]
NOTHING = "–"
LARGEST = 4  # sizes, of which the slope is
GROWS = {"length": "tokens", "heads": "heads", "batch": "rows"}


def grouped(results: list[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    """(title, kind, the settings in which it was measured), in the order of measuring."""
    groups = dict[tuple[str, str], list[Result]]()
    for result in results:
        if not result["case"]["swept"]:
            groups.setdefault((result["title"], result["kind"]), []).append(result)
    for (title, kind), members in groups.items():
        yield title, kind, members


def columns(members: list[Result]) -> list[str]:
    return [f"{member['allocator']}, {member['threads']} thread{'s' * (member['threads'] > 1)}" for member in members]


def table(members: list[Result]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one comparison: the fastest first, then those that did not run."""
    if members[0]["kind"] == "memory":
        return ["", "peak beyond the inputs", "beyond the floor"], list(_memory_rows(members[0]))
    headings = ["", *(f"ratio ({name})" for name in columns(members)), "share of pairs", "ms", "GB/s", "error"]
    first = members[0]["rows"]
    there = {"share of pairs": any("share" in row for row in first), "GB/s": any(row.get("gb_per_s") for row in first)}
    names = [row["name"] for row in first if row["status"] != NOT_ASKED]
    by_name = [{row["name"]: row for row in member["rows"]} for member in members]
    floor = members[0]["floor"]
    rows = [[floor["name"] + " (floor)", *["1"] * len(members), "1", ms(floor), gb(floor), NOTHING]]
    for name in sorted(names, key=lambda name: by_name[0][name].get("ratio", {}).get("median", float("inf"))):
        named = [of_member.get(name, {"status": NOTHING}) for of_member in by_name]
        rows.append([name, *(ratio(row) for row in named), share(named[0]), ms(named[0]), gb(named[0]), error(named)])
    kept = [place for place, heading in enumerate(headings) if there.get(heading, True)]
    return [headings[place] for place in kept], [[row[place] for place in kept] for row in rows]


def growths(results: list[Result]) -> Iterator[tuple[str, list[Result]]]:
    """(title, the results along which something grows, smallest first)."""
    groups = dict[tuple[str, str, str, int], list[Result]]()
    for result in results:
        case = result["case"]
        if swept := case["swept"]:
            groups.setdefault((case["benchmark"], case["name"], swept, result["threads"]), []).append(result)
    for (benchmark, name, swept, _), members in groups.items():
        members.sort(key=lambda member: member["case"][swept])
        yield f"{benchmark}: {name}, {members[0]['case']['dtype']}, as {GROWS[swept]} grow ({columns(members)[0]})", members


def growth_table(members: list[Result]) -> tuple[list[str], list[list[str]]]:
    """Milliseconds and the ratio to the floor for each contender, a column for each size, and the slope."""
    swept = members[0]["case"]["swept"]
    sizes = [member["case"][swept] for member in members]
    floors = [member["floor"] for member in members]
    rows = [[members[0]["floor"]["name"] + " (floor)", *(f"{ms(floor)} ms" for floor in floors), slope(sizes, floors)]]
    for place, first in enumerate(members[0]["rows"]):
        named = [member["rows"][place] for member in members]
        rows.append(
            [
                first["name"],
                *(f"{ms(row)} ms, {short(row['ratio']['median'])}×" if "ratio" in row else row["status"] for row in named),
                slope(sizes, named),
            ]
        )
    return [GROWS[swept], *map(str, sizes), "slope"], rows


def slope(sizes: list[int], rows: list[dict[str, Any]]) -> str:
    """The power of the size by which the time grows, over the largest sizes: 2 is four times as long for twice the size."""
    points = [
        (log2(size), log2(row["seconds"]["median"])) for size, row in zip(sizes, rows, strict=True) if "seconds" in row
    ]
    if len(points) < 2:
        return NOTHING
    return f"{linear_regression(*zip(*points[-LARGEST:], strict=True)).slope:.2f}"


def _memory_rows(result: Result) -> Iterator[list[str]]:
    floor = result["floor"].get("peak_bytes")
    yield [f"{result['floor']['name']} (floor)", mib(floor), "0"]
    for row in sorted(result["rows"], key=lambda row: row.get("peak_bytes", float("inf"))):
        peak = row.get("peak_bytes")
        more = NOTHING if peak is None or floor is None else mib(peak - floor)
        yield [row["name"], row["status"] if peak is None else mib(peak), more]


def ratio(row: dict[str, Any]) -> str:
    if "ratio" not in row:
        return str(row["status"])
    spread = row["ratio"]
    return f"{short(spread['median'])} ({short(spread['low'])} to {short(spread['high'])})"


def share(row: dict[str, Any]) -> str:
    return f"{row['share']:.3f}" if "share" in row else NOTHING


def short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ms(row: dict[str, Any]) -> str:
    return f"{1e3 * row['seconds']['median']:.3g}" if "seconds" in row else NOTHING


def gb(row: dict[str, Any]) -> str:
    return f"{row['gb_per_s']:.3g}" if row.get("gb_per_s") else NOTHING


def mib(count: float | None) -> str:
    return NOTHING if count is None else f"{count / 2**20:.1f} MiB"


def error(rows: list[dict[str, Any]]) -> str:
    """The largest error over settings and results; if ours is wrong, with the limit."""
    wrong = next((row for row in rows if row["status"] == "wrong"), None)
    if wrong is not None:
        return ", ".join(
            f"{name} {value:.1e} of {wrong['allowed'][name]:.1e} allowed" for name, value in wrong["errors"].items()
        )
    largest = dict[str, float]()
    for row in rows:
        for name, value in row.get("errors", {}).items():
            largest[name] = max(value, largest.get(name, 0.0))
    if not largest:
        return NOTHING
    places = all(name.startswith("to ") for name in largest)  # of a table: by last position
    return ", ".join(f"{value:.1e} {name}" for name, value in largest.items()) if places else f"{max(largest.values()):.1e}"


def absent(done: dict[str, Any]) -> str:
    """The peers that did not run, with the reasons."""
    missing = [
        f"{name} ({standing})"
        for name, standing in done["peers"].items()
        if not standing[:1].isdigit() and standing != NOT_ASKED
    ]
    return f"Not compared: {', '.join(missing)}." if missing else ""


def disturbed(results: list[Result]) -> str:
    timed = [result for result in results if result["kind"] == "time"]
    lost, kept = sum(result["disturbed"] for result in timed), sum(result["disturbed_kept"] for result in timed)
    if not lost:
        return "No round was disturbed by other processes."
    text = f"{lost} rounds were disturbed by other processes and left out"
    return f"{text}; in {kept} comparisons nearly all were, and they count" if kept else text


def about(done: dict[str, Any]) -> list[str]:
    machine = done["machine"]
    kernels = machine["kernels"] + (f" ({machine['why_no_kernels']})" if machine["why_no_kernels"] else "")
    peers = ", ".join(f"{name} {standing}" for name, standing in done["peers"].items() if standing[:1].isdigit())
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, {machine['libc']}; "
        f"{machine['date'][:10]}",
        f"posenc {machine['posenc']}, kernels: {kernels}; torch {machine['torch']}, Python {machine['python']}, "
        f"numpy {machine['numpy']}, Triton {machine['triton'] or 'not installed'}; peers: {peers or 'none'}",
        "large: glibc's mmap and trim thresholds at 1 GiB; stock: its defaults. A ratio is the median over rounds of a "
        "time over the floor's in the same round, with quartiles.",
        disturbed(done["results"]),
        *filter(None, [absent(done)]),
    ]


def tables(results: list[Result]) -> Iterator[tuple[str, list[str], list[list[str]], set[str]]]:
    """(title, headings, rows, names of ours): every comparison, then how costs grow."""
    for title, _, members in grouped(results):
        yield title, *table(members), {row["name"] for row in members[0]["rows"] if row["ours"]}
    for title, members in growths(results):
        yield title, *growth_table(members), {row["name"] for row in members[0]["rows"] if row["ours"]}


def show(done: dict[str, Any], console: Console) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    for title, headings, rows, ours in tables(done["results"]):
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
        for number, heading in enumerate(headings):
            grid.add_column(heading, justify="right" if number else "left", overflow="fold")
        for row in rows:
            grid.add_row(*map(escape, row), style="bold" if row[0] in ours else "dim" if row[0].endswith("(floor)") else "")
        console.print(grid)
    for line in bar_lines(done["bars"]):
        console.print(line, markup=False, soft_wrap=True)
    for line in about(done):
        console.print(line, markup=False, style="dim", soft_wrap=True)


def bar_lines(bars: list[dict[str, Any]]) -> list[str]:
    return [f"{'met    ' if bar['met'] else 'NOT MET'}  {bar['bar']}: {amount(bar)} ({setting(bar)})" for bar in bars]


def amount(bar: dict[str, Any]) -> str:
    return mib(bar["measured"]) + f" of {mib(bar['limit'])}" if bar["measure"] == "memory" else short(bar["measured"])


def setting(bar: dict[str, Any]) -> str:
    threads = f"{bar['threads']} thread{'s' * (bar['threads'] > 1)}"
    return f"{bar['length']} keys" if bar["measure"] == "memory" else threads


def markdown(done: dict[str, Any]) -> str:
    lines = ["# Measured", "", *(f"{line}  " for line in about(done)), ""]
    if done["bars"]:
        lines += ["## Targets", "", "| target | setting | measured | |", "|---|---|---|---|"]
        lines += [
            f"| {cell(bar['bar'])} | {setting(bar)} | {amount(bar)} | {'met' if bar['met'] else '**not met**'} |"
            for bar in done["bars"]
        ]
        lines.append("")
    for title, headings, rows, ours in tables(done["results"]):
        lines += [f"## {title[0].upper()}{title[1:]}", "", f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
        for name, *cells in rows:
            lines.append(f"| {'**' + cell(name) + '**' if name in ours else cell(name)} | {' | '.join(map(cell, cells))} |")
        lines.append("")
    return "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def curves(done: dict[str, Any]) -> list[Curves]:
    """How costs grow, for the figure: milliseconds over sizes."""
    from bench.figure import Curves

    all_curves = []
    for title, members in growths(done["results"]):
        swept, lines = members[0]["case"]["swept"], dict[str, tuple[bool, list[tuple[float, float]]]]()
        for member in members:
            for row in [{**member["floor"], "ours": False}, *member["rows"]]:
                if "seconds" in row:
                    _, points = lines.setdefault(row["name"], (row["ours"], []))
                    points.append((member["case"][swept], 1e3 * row["seconds"]["median"]))
        all_curves.append(Curves(title, GROWS[swept], lines))
    return all_curves


def panels(done: dict[str, Any], benchmark: str) -> list[Panel]:
    """What the figure of one benchmark shows: the first setting of every comparison."""
    from bench.figure import Panel

    shown = []
    for title, kind, members in grouped(done["results"]):
        if kind != "time" or members[0]["case"]["benchmark"] != benchmark:
            continue
        rows = sorted((row for row in members[0]["rows"] if "ratio" in row), key=lambda row: -row["ratio"]["median"])
        if rows:
            spreads = [
                (row["name"], row["ratio"]["low"], row["ratio"]["median"], row["ratio"]["high"], row["ours"])
                for row in rows
            ]
            shown.append(Panel(f"{title.partition(': ')[2]} ({columns(members)[0]})", members[0]["floor"]["name"], spreads))
    return shown


def write(done: dict[str, Any], folder: Path) -> list[str]:
    """results.json, results.md and a picture of each benchmark as PNG and SVG; each file whole or absent."""
    from bench.figure import draw, draw_curves
    from posenc.lab.records.files import write as whole

    whole(folder / "results.json", json.dumps(done, indent=1, ensure_ascii=False))
    whole(folder / "results.md", markdown(done))
    written = ["results.json", "results.md"]
    for benchmark in dict.fromkeys(result["case"]["benchmark"] for result in done["results"]):
        if drawn := panels(done, benchmark):
            for form in ("png", "svg"):
                whole(folder / f"{benchmark}.{form}", draw(drawn, form))
                written.append(f"{benchmark}.{form}")
    if grown := curves(done):
        for form in ("png", "svg"):
            whole(folder / f"growth.{form}", draw_curves(grown, form))
            written.append(f"growth.{form}")
    return written
