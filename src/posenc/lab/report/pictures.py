"""The charts of the page as SVG files in each language, for a README or a paper; they follow the reader's dark theme.

curves-TASK.svg, curves-TASK.zh-CN.svg     quality against length; with one length, one dot for each seed
pareto-factor.svg, pareto-area.svg, …      cost against quality
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import files

from posenc.lab.findings.titles import main_task
from posenc.lab.findings.wording import counted_seeds
from posenc.lab.records.files import named
from posenc.lab.report import charts, svg
from posenc.lab.report.cells import Findings, Task, learnt, top
from posenc.lab.report.plain_colours import plain_colours
from posenc.lab.report.style import sheet
from posenc.lab.report.words import of, phrase
from posenc.lab.say import say
from posenc.support.languages import LANGUAGES, Language, Words

ENDING: dict[Language, str] = {"en": "", "zh": ".zh-CN"}
HEAD, MARGIN = 62, 12
TITLE, NOTE = 20, 13  # sizes of letters
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', sans-serif"


def pictures(findings: Findings) -> dict[str, str]:
    """The SVG files by name."""
    drawn = [*_curves(findings), *_pareto(findings)]
    return {
        f"{name}{ENDING[language]}.svg": standalone(drawing, title, note, language)
        for name, drawing, title, note in drawn
        for language in ENDING
    }


def curves_drawn(findings: Findings, task: Task, *, width: int = 940, height: int = 470) -> str:
    """Quality against length of the encodings that learnt the task.

    For a task with one length, or that no encoding learnt, the chart shows that length alone. Empty if there is no score.
    """
    if len(task["lengths"]) > 1 and learnt(task):
        chart = charts.curves(findings, task)
        return svg.lines(chart, width=width, height=height) if chart else ""
    drawn = charts.strips(findings, task)
    return svg.strips(*drawn, width=430, described=of(task["title"])) if drawn else ""


def standalone(drawing: str, title: Words, note: Words, language: Language) -> str:
    """A chart of the page as a separate file with a title, at least as wide as the title; without CSS variables."""
    size = re.match(r'<svg viewBox="0 0 (\S+) (\S+)"', drawing)
    assert size is not None
    width, height = float(size[1]), float(size[2])
    others = "".join(f".{other} {{ display: none; }} " for other in LANGUAGES if other != language)
    style = files("posenc.lab.report").joinpath("charts.css").read_text("utf-8") + sheet() + others
    style += f"svg {{ font-family: {FONT}; }} .paper {{ fill: var(--sheet); }} svg .title {{ fill: var(--ink); "
    style += f"font-size: {TITLE}px; font-weight: 650; }}"
    lines = {TITLE: title.in_language(language), NOTE: note.in_language(language)}
    whole = max(width, *(_advance(line, size) for size, line in lines.items()))
    inside = drawing.replace("<svg ", f'<svg y="{HEAD}" width="{width:g}" height="{height:g}" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} 0 {whole + 2 * MARGIN:g} {HEAD + height + MARGIN:g}">'
        f'<style>{plain_colours(style)}</style><rect class="paper" x="{-MARGIN}" width="100%" height="100%"/>'
        f'<text x="4" y="28" class="title">{html.escape(lines[TITLE])}</text>'
        f'<text x="4" y="48">{html.escape(lines[NOTE])}</text>{inside}</svg>\n'
    )


def _advance(line: str, size: int) -> float:
    """About how wide a line is: a wide letter of Chinese is as wide as its size, others six tenths of it."""
    return 4 + size * sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in line)


def _curves(findings: Findings) -> Iterator[tuple[str, str, Words, Words]]:
    seeds = counted_seeds(findings)
    note = say("posenc lab {name}: every dot is one seed; {seeds} each", name=findings["name"], seeds=seeds)
    for task in findings["tasks"]:
        if drawing := curves_drawn(findings, task):
            called, trained, far = of(task["title"]), task["length"], max(task["lengths"])
            tested = say(", tested up to {far}", far=far) if top(task) > 1 else Words("")
            title = say("{called}: trained at length {trained}{tested}", called=called, trained=trained, tested=tested)
            yield f"curves-{named(task['name'])}", drawing, title, note


def _pareto(findings: Findings) -> Iterator[tuple[str, str, Words, Words]]:
    called = of(main_task(findings)["title"])
    note = say("{called}; filled dots: no other encoding is both faster to train and better", called=called)
    for over in ("factor", "area"):
        if drawn := charts.pareto(findings, over):
            spots, x, y = drawn
            described = say("{words}; {words_2}", words=x.words, words_2=y.words)
            drawing = svg.scatter(spots, x, y, width=520, height=420, described=described)
            yield f"pareto-{over}", drawing, phrase("pareto"), note
