"""The pictures of a ladder: score against the tokens that a model was trained on, at one length a picture.

scores-128.svg, scores-128.zh-CN.svg, scores-1024.svg, …

Curves are those of the smallest model. Rings are the means of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.findings.wording import numbered
from posenc.lab.report import svg
from posenc.lab.report.pictures import ENDING, standalone
from posenc.lab.report.style import label, look
from posenc.lab.report.words import of, phrase
from posenc.lab.say import say
from posenc.support.languages import Words, clauses, joined

Json = Mapping[str, Any]
TOKENS = say("tokens that a model was trained on")


def ladder_pictures(findings: Json) -> dict[str, str]:
    """The SVG files by name; none for a length at which nothing was scored, and none for a single number of tokens."""
    svgs = {}
    for length in dict.fromkeys((findings["task"]["length"], findings["task"]["lengths"][-1])):
        chart = _chart(findings, length)
        if chart is not None:
            drawing = svg.lines(chart, width=940, height=430)
            for language, ending in ENDING.items():
                svgs[f"scores-{length}{ending}.svg"] = standalone(
                    drawing, _title(findings, length), _note(findings), language
                )
    return svgs


def _title(findings: Json, length: int) -> Words:
    called, trained = of(findings["task"]["title"]), findings["task"]["length"]
    return say("{called}: trained at length {trained}, scored at {length}", called=called, trained=trained, length=length)


def _note(findings: Json) -> Words:
    small, *others = dict.fromkeys(_size(rung) for rung in findings["rungs"])
    rings = joined(others, ", ", "、")
    curves = say("curves: {small}, a dot for each seed", small=small)
    return clauses(curves, say("rings: {rings}", rings=rings)) if others else curves


def _size(rung: Json) -> Words:
    layers, width = rung["size"]["n_layers"], rung["size"]["d_model"]
    return say("{layers} of width {width}", layers=numbered(layers, "layer", "layers"), width=width)


def _chart(findings: Json, length: int) -> svg.Chart | None:
    rungs, at = findings["rungs"], str(length)
    tokens = sorted({rung["tokens"] for rung in rungs if rung["tokens"]})
    scale = 1 if findings["task"]["measure"] == "bits" else 100
    series = []
    for name, arms in findings["arms"].items():
        points, rings = [], []
        for rung, arm in zip(rungs, arms, strict=True):
            if arm["means"][at] is None or not rung["tokens"]:
                continue
            if _size(rung) == _size(rungs[0]):
                seeds = [scale * seed for seed in arm["seeds"][at].values()]
                points.append((float(rung["tokens"]), scale * arm["means"][at], seeds))
            else:
                rings.append((float(rung["tokens"]), scale * arm["means"][at]))
        if points or rings:
            series.append(svg.Series(label(name), look(name, list(findings["arms"])).classes, points, rings=rings))
    if not series or len(tokens) < 2:
        return None
    return svg.Chart(
        series,
        ticks=[(float(count), f"{count:,}") for count in tokens],
        x_words=TOKENS,
        y_words=phrase("bits low" if scale == 1 else "exact high"),
        described=_title(findings, length),
        trained=None,
        x_log=True,
        y_range=None if scale == 1 else (0.0, 100.0),
    )
