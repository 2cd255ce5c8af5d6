"""Attention by distance, head by head, over the steps of training, beside the learned table at the same step.

probability                     one small panel for each layer and head; left is back in the text.
 1 |        ._                  Without JavaScript the panels show the last step of one encoding; with it, any
.1 |     _/'                    step of any encoding. The page holds curves as heights, which the script joins.
   +---------+
    16  4  1 0
"""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from posenc.lab.findings.titles import title
from posenc.lab.report import svg
from posenc.lab.report.cells import Findings, Task, arms_of, times
from posenc.lab.report.html import span, table, tag
from posenc.lab.report.style import look
from posenc.lab.report.words import of, phrase
from posenc.pictures.plots.style import DIVERGING, mix
from posenc.support.languages import Words

WIDTH, HEIGHT = 200, 128
FRAME = svg.Frame(42, WIDTH - 8, 24, HEIGHT - 20, (0, 1), (1e-4, 1), False, y_log=True)
LAYERS, HEADS, STEPS, DISTANCES, ROWS = 4, 8, 12, 64, 96  # at most this many of each on the page

Head = tuple[int, int]
Profile = Mapping[int, float]


@dataclass(frozen=True)
class Looks:
    """profiles[arm][step][layer, head][distance] of one task; distance is query - key."""

    profiles: Mapping[str, Mapping[int, Mapping[Head, Profile]]]
    steps: Sequence[int]
    heads: Sequence[Head]
    distances: Sequence[int]
    thinned: Words | None


def attention(findings: Findings) -> str:
    shown = [content for task in findings["tasks"] if (content := _task(findings, task))]
    return "".join(shown)


def _task(findings: Findings, task: Task) -> str:
    parts = [_profiles(findings, task) if task["attention"] else "", _links(findings, task) if task["links"] else ""]
    return "".join(parts) and f'<article class="task">{tag("h3", of(task["title"]))}{"".join(parts)}</article>'


# Profiles -------------------------------------------------------------------------------------------------------------


def _profiles(findings: Findings, task: Task) -> str:
    looks = gather(task)
    arm = "rope" if "rope" in looks.profiles else next(iter(looks.profiles))
    names = arms_of(findings)
    direction = phrase("attention back" if min(looks.distances) >= 0 else "attention both")
    text = tag("p", phrase("attention text", direction=direction)) + (
        tag("p", looks.thinned, "small") if looks.thinned else ""
    )
    last = looks.profiles[arm][max(looks.profiles[arm])]
    panels = "".join(_panel(looks, head, last.get(head, {})) for head in looks.heads)
    similar = task["similarity"]
    data = {
        "steps": looks.steps,
        "arms": {name: _paper(looks, name) | {"kind": look(name, names).classes} for name in looks.profiles},
        "similarity": similar
        and {"steps": similar["steps"], "images": [_matrix(matrix) for matrix in similar["matrices"]]},
    }
    columns = min(len({head for _, head in looks.heads}), 4)
    return (
        f'<div class="looks">{text}{_controls(looks, arm)}'
        f'<div class="beside"><div class="heads {look(arm, names).classes}" style="--columns:{columns}">{panels}</div>'
        f"{_similarity(similar) if similar else ''}</div>"
        f'<script type="application/json">{script_safe(data)}</script></div>'
        f"{_strongest(looks, names)}"
    )


def gather(task: Task) -> Looks:
    """The part of the profiles that the page shows; an even selection if there are too many."""
    rows = task["attention"]
    steps, distances = (sorted({row["step"] for row in rows}), sorted({d for row in rows for d in row["distance"]}))
    layers, heads = sorted({row["layer"] for row in rows}), sorted({row["head"] for row in rows})
    kept = Chosen(even(steps, STEPS), even(layers, LAYERS), heads[:HEADS], near_first(distances, DISTANCES))
    profiles: dict[str, dict[int, dict[Head, dict[int, float]]]] = {}
    for row in rows:
        if row["step"] in kept.steps and row["layer"] in kept.layers and row["head"] in kept.heads:
            profile = dict(zip(row["distance"], row["probability"], strict=True))
            of_step = profiles.setdefault(row["arm"], {}).setdefault(row["step"], {})
            of_step[row["layer"], row["head"]] = {d: profile[d] for d in kept.distances if d in profile}
    thinned = None
    if len(kept.layers) < len(layers) or len(kept.heads) < len(heads) or len(kept.distances) < len(distances):
        thinned = phrase(
            "attention thinned",
            layers=", ".join(map(str, kept.layers)),
            heads=", ".join(map(str, kept.heads)),
            distances=len(kept.distances),
            all=len(distances),
        )
    return Looks(
        profiles, kept.steps, [(layer, head) for layer in kept.layers for head in kept.heads], kept.distances, thinned
    )


@dataclass(frozen=True)
class Chosen:
    steps: Sequence[int]
    layers: Sequence[int]
    heads: Sequence[int]
    distances: Sequence[int]


def even(values: Sequence[int], most: int) -> list[int]:
    """Evenly spaced, including the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(n * (len(values) - 1) / (most - 1))] for n in range(most)]


def near_first(distances: Sequence[int], most: int) -> list[int]:
    """All of them, or those nearest to even steps on the scale of the axis."""
    if len(distances) <= most:
        return list(distances)
    low, high = bent(distances[0]), bent(distances[-1])
    places = [low + n * (high - low) / (2 * most) for n in range(2 * most + 1)]
    nearest = {min(distances, key=lambda distance: abs(bent(distance) - place)) for place in places}
    return even(sorted(nearest), most) if len(nearest) > most else sorted(nearest)


def bent(distance: float) -> float:
    """Logarithmic on both sides of 0."""
    return math.copysign(math.log2(1 + abs(distance)), distance)


def across(looks: Looks, distance: float) -> float:
    """The x coordinate of a distance; earlier tokens are at the left."""
    low, high = -bent(max(looks.distances)), -bent(min(min(looks.distances), 0))
    return FRAME.x((-bent(distance) - low) / ((high - low) or 1))


def up(probability: float) -> float:
    return FRAME.y(min(max(probability, 1e-4), 1.0))


def _paper(looks: Looks, arm: str) -> dict[str, Any]:
    """Coordinates in tenths of a unit: "x" of the distances, "y" by step and panel."""
    ordered = sorted(looks.distances, reverse=True)

    def heights(profile: Profile) -> list[int]:
        return [round(10 * up(profile[distance])) if distance in profile else -1 for distance in ordered]

    steps = [looks.profiles[arm].get(step, {}) for step in looks.steps]
    return {
        "x": [round(10 * across(looks, distance)) for distance in ordered],
        "y": [[heights(of_step.get(head, {})) for head in looks.heads] for of_step in steps],
    }


def _panel(looks: Looks, head: Head, profile: Profile) -> str:
    words = phrase("head", layer=head[0], head=head[1])
    parts = [svg.spoken(FRAME.left, 14, words, "tick", "start")]
    for power in range(-4, 1, 2):
        parts.append(svg.line(FRAME.left, up(10.0**power), FRAME.right, up(10.0**power), "grid"))
        parts.append(svg.text(FRAME.left - 4, up(10.0**power) + 4, f"{10.0**power:g}", "tick", "end"))
    for d in _ticks(looks):
        x = across(looks, d)
        parts.append(svg.line(x, FRAME.top, x, FRAME.bottom, "grid" if d else "one"))
        parts.append(svg.text(x, HEIGHT - 5, str(abs(d)), "tick", "middle"))
    corners = " L".join(f"{across(looks, d):.1f} {up(profile[d]):.1f}" for d in sorted(profile, reverse=True))
    parts.append(f'<path d="{"M" + corners if corners else ""}" class="curve"/>')
    return svg.picture(WIDTH, HEIGHT, parts, words)


def _ticks(looks: Looks) -> list[int]:
    """0 and powers of 4, on either side."""
    low, high = min(looks.distances), max(looks.distances)
    powers = [4**n for n in range(8)]
    return [-power for power in powers if -power >= low] + [0] + [power for power in powers if power <= high]


def _controls(looks: Looks, arm: str) -> str:
    """The controls, which only the script makes visible."""
    last = len(looks.steps) - 1
    options = "".join(
        f'<option value="{html.escape(name)}"{" selected" if name == arm else ""}>{html.escape(_option(name))}</option>'
        for name in looks.profiles
    )
    return (
        '<div class="controls" hidden>'
        f"<label>{span(phrase('shown encoding'))} <select>{options}</select></label>"
        f"<label>{span(phrase('shown step'))} "
        f'<input type="range" min="0" max="{last}" value="{last}"> <output>{looks.steps[last]}</output></label></div>'
    )


def _option(name: str) -> str:
    """The text of an option. It holds no markup, so it contains both languages where they differ."""
    words = title(name)
    return words.en if words.en == words.zh else " · ".join(words.both())


def _strongest(looks: Looks, names: Sequence[str]) -> str:
    """The content of the panels as a table."""

    def entry(profile: Profile) -> str:
        if not profile:
            return "<td>–</td>"
        distance = max(profile, key=lambda distance: profile[distance])
        where = (
            phrase("itself")
            if distance == 0
            else phrase("back", n=distance)
            if distance > 0
            else phrase("ahead", n=-distance)
        )
        return f"<td>{span(phrase('at distance', p=f'{profile[distance]:.3f}', where=where))}</td>"

    head = [span(phrase("encoding")), *(span(phrase("head", layer=layer, head=head)) for layer, head in looks.heads)]
    body = []
    for name, steps in looks.profiles.items():
        last = steps[max(steps)]
        body.append([span(title(name)), *(entry(last.get(head, {})) for head in looks.heads)])
    return f"<details><summary>{span(phrase('strongest'))}</summary>{table('plain', head, body)}</details>"


# The learned table ----------------------------------------------------------------------------------------------------


def _similarity(similarity: Mapping[str, Any]) -> str:
    step = similarity["steps"][-1]
    words = phrase("similarity here", step=step)
    label = html.escape(" ".join(words.both()))
    picture = f'<img alt="{label}" src="{_matrix(similarity["matrices"][-1])}" width="240" height="240">'
    caption = f"<figcaption>{span(phrase('similarity'))}</figcaption>"
    note = tag("p", phrase("similarity text"), "small")
    return f'<figure class="similarity">{caption}{picture}{note}{_by_distance(similarity)}</figure>'


def _matrix(matrix: Sequence[Sequence[float]]) -> str:
    """The matrix as an inline PNG; a large matrix is thinned to every n-th row and column."""
    every = -(-len(matrix) // ROWS)
    values = np.clip(np.array(matrix)[::every, ::every], -1, 1)
    image = Image.fromarray(np.rint(127.5 * (1 + values)).astype(np.uint8))
    image.putpalette(b"".join(bytes.fromhex(mix(DIVERGING, shade / 255)[1:]) for shade in range(256)))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _by_distance(similarity: Mapping[str, Any]) -> str:
    """The content of the picture as a table: number of rows between two rows against training step."""
    size = len(similarity["matrices"][-1])
    apart = [distance for distance in (1, 2, 4, 8, 16, 32, 64, 128, 256) if distance < size]
    body = []
    for lag in apart:
        means = (sum(matrix[n][n + lag] for n in range(size - lag)) / (size - lag) for matrix in similarity["matrices"])
        body.append([str(lag), *(f"<td>{mean:+.2f}</td>" for mean in means)])
    head = [span(phrase("apart")), *(str(step) for step in similarity["steps"])]
    inside = table("plain", head, body, phrase("similarity rows"))
    return f"<details><summary>{span(phrase('numbers'))}</summary>{inside}</details>"


# Links between words --------------------------------------------------------------------------------------------------


def _links(findings: Findings, task: Task) -> str:
    """The head with the highest probability at the last step of the first seed, for each encoding and link."""
    first, last = dict[str, int](), dict[str, int]()
    for row in task["links"]:
        first[row["arm"]] = min(first.get(row["arm"], row["seed"]), row["seed"])
        last[row["arm"]] = max(last.get(row["arm"], 0), row["step"])
    rows = [row for row in task["links"] if (row["seed"], row["step"]) == (first[row["arm"]], last[row["arm"]])]
    names = list(dict.fromkeys(row["link"] for row in rows))
    heads = len({(row["layer"], row["head"]) for row in rows})

    def entry(arm: str, link: str) -> str:
        of_link = [row for row in rows if row["arm"] == arm and row["link"] == link]
        if not of_link:
            return f'<td class="none missing">{span(phrase("missing"))}</td>'
        most = max(of_link, key=lambda row: row["probability"])
        where = span(phrase("head", layer=most["layer"], head=most["head"]))
        ratio = f"{times(most['probability'] / most['even'])}×" if most["even"] else "–"
        return f"<td>{ratio}<small>{most['probability']:.3f}, {where}</small></td>"

    def even_look(link: str) -> str:
        even = [row["even"] for row in rows if row["link"] == link]
        return f"<td>{sum(even) / len(even):.3f}</td>"

    head = [span(phrase("encoding")), *(html.escape(name) for name in names)]
    body = [[span(phrase("even")), *map(even_look, names)]]
    body += [[span(title(arm)), *(entry(arm, name) for name in names)] for arm in last]
    return tag("h4", phrase("links")) + tag("p", phrase("links text", heads=heads)) + table("plain links", head, body)


def script_safe(data: Any) -> str:
    """JSON that cannot close the script element around it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
