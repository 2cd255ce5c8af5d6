"""The comparison as one HTML file that asks nothing of the network: pictures inline, light and dark, both languages."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from posenc import catalogue
from posenc.lab import svg
from posenc.lab.exact import SAME
from posenc.lab.prose import factor, largest, say, small, state_words
from posenc.lab.summary import bits, ends, listed, needs, sentences, title
from posenc.plots.style import mix
from posenc.words import Words

Done = Mapping[str, Any]
Row = Mapping[str, Any]

HEAT = ("#dcefe9", "#f8e3b4", "#eb9a73", "#c44a4a", "#6d1030")
KINDS = ("flat", "fades", "breaks", "home")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(done: Done) -> str:
    """The whole file."""
    parts = (_header, _answer, _curves, _heat, _places, _costs, _facts, _how)
    style, script = (files("posenc.lab").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>posenc compare</title>
<style>
{style}</style>
</head>
<body>
<script>
{script}</script>
<main>
{"".join(part(done) for part in parts)}</main>
</body>
</html>
"""


# Sections -------------------------------------------------------------------------------------------------------------


def _header(done: Done) -> str:
    buttons = "".join(
        f'<button type="button" data-language="{language}">{name}</button>'
        for language, name in (("en", "English"), ("zh", "中文"))
    )
    bar = f'<div class="bar"><span class="brand">posenc compare</span><span class="languages">{buttons}</span></div>'
    return f"<header>{bar}{_tag('h1', say('title', done))}{_tag('p', say('lead', done), 'lead')}</header>\n"


def _answer(done: Done) -> str:
    cards = "".join(
        '<div class="card">' + "".join(_tag("div", words, kind) for kind, words in need._asdict().items()) + "</div>"
        for need in needs(done)
    )
    said = "".join(_tag("li", sentence) for sentence in sentences(done))
    return _section(say("answer", done), f'<div class="cards">{cards}</div><ul class="said">{said}</ul>')


def _curves(done: Done) -> str:
    home, _ = ends(done)
    lengths = done["recipe"]["lengths"]
    drawn = sorted((row for row in done["rows"] if row["learnt"]), key=lambda row: bits(row, home))

    def points(row: Row) -> Iterator[tuple[float, float, Sequence[float]]]:
        for length in lengths:
            if "mean" in (cell := row["bits"][str(length)]):
                yield length, cell["mean"], cell["seeds"]

    series = [svg.Series(title(row), _kind(row), list(points(row)), _note(row, done)) for row in drawn]
    chart = svg.Chart(
        series, [(length, str(length)) for length in lengths], say("context", done), say("bits", done), say("curves", done),
        trained=svg.Mark(lengths[0], say("trained", done)), level=svg.Mark(done["byte_pairs"], say("pairs", done)),
        x_log=True,
    )  # fmt: skip
    picture = _legend(done) + _both(chart, 470) if drawn else ""
    return _section(say("curves", done), _tag("p", say("curves text", done)) + picture + _left_out(done))


def _kind(row: Row) -> str:
    """The class that colours it everywhere."""
    return row["behaviour"] or "home"


def _note(row: Row, done: Done) -> Words:
    """What stands behind a curve's name: the rise at the longest length, or where it ends."""
    _, far = ends(done)
    if far in row["rise"]:
        rise = f"{row['rise'][far]:+.2f}"
        return Words(rise, rise)
    limit = row["exact"]["largest_position"]
    return Words("", "") if limit is None else say("ends at", done, length=limit + 1)


def _legend(done: Done) -> str:
    present = {_kind(row) for row in done["rows"] if row["learnt"]}
    items = (f'<span class="{kind}"><i></i>{_span(say(f"kind {kind}", done))}</span>' for kind in KINDS if kind in present)
    return f'<p class="legend">{"".join(items)}</p>'


def _left_out(done: Done) -> str:
    home, _ = ends(done)

    def number(row: Row) -> str:
        cell = row["bits"][home]
        return f"{cell['mean']:.2f}" if "mean" in cell else cell["state"]

    rows = [row for row in done["rows"] if not row["learnt"]]
    return _tag("p", say("not drawn", done, rows=listed(rows, number)), "small") if rows else ""


def _heat(done: Done) -> str:
    home, far = ends(done)
    lengths = done["recipe"]["lengths"]
    means = [cell["mean"] for row in done["rows"] for cell in row["bits"].values() if "mean" in cell]
    low, high = min(means, default=0.0), max(means, default=1.0)

    def cell(row: Row, length: int) -> str:
        value = row["bits"][str(length)]
        if "state" in value:
            return f'<td class="none">{_span(state_words(value["state"]))}</td>'
        share = (value["mean"] - low) / max(high - low, 1e-9)
        style = f"background:{mix(HEAT, share)};color:{'#fff' if share > 0.55 else '#1d2129'}"
        seeds = " ".join(f"{seed:.2f}" for seed in value["seeds"])
        faint = "" if row["learnt"] else ' class="unlearnt"'
        return f'<td{faint} style="{style}"><b>{value["mean"]:.2f}</b><small>{seeds}</small></td>'

    def worth(row: Row) -> tuple[int, float]:
        if "mean" in row["bits"][far]:
            return 0, bits(row, far)
        if "mean" in row["bits"][home]:
            return 1 if row["learnt"] else 2, bits(row, home)
        return 3, 0.0

    head = [_span(say("encoding", done)), *(f"{length}<small>{length // lengths[0]}×</small>" for length in lengths)]
    body = [
        [_span(title(row)), *(cell(row, length) for length in lengths), f"<td>{factor(row)}</td>"]
        for row in sorted(done["rows"], key=worth)
    ]
    table = _table("heat", [*head, _span(say("flat to", done))], body)
    return _section(say("heat", done), _tag("p", say("heat text", done)) + table)


def _places(done: Done) -> str:
    drawn = [row for row in done["rows"] if row["behaviour"]]
    if not drawn:
        return ""
    step, longest = done["recipe"]["targets"], max(done["recipe"]["lengths"])

    def points(row: Row) -> list[tuple[float, float, Sequence[float]]]:
        curves = [trial["by_position"] for trial in row["trials"]]
        return [(step * (n + 0.5), sum(bits) / len(bits), ()) for n, bits in enumerate(zip(*curves, strict=True))]

    chart = svg.Chart(
        [svg.Series(title(row), _kind(row), points(row)) for row in drawn],
        [(place, str(place)) for place in range(0, longest + 1, longest // 4)],
        say("place", done), say("bits", done), say("places", done),
        trained=svg.Mark(done["recipe"]["length"], say("trained", done)), level=None, x_log=False,
    )  # fmt: skip
    return _section(say("places", done), _tag("p", say("places text", done)) + _both(chart, 400))


def _costs(done: Done) -> str:
    timed = [row for row in done["rows"] if row["cost"]]
    if not timed:
        return ""

    def panel(kind: str) -> str:
        words = say(f"cost {kind}", done)
        rows = [
            svg.Ratio(title(row), _kind(row), *(row["cost"][kind][part] for part in ("low", "median", "high")))
            for row in sorted(timed, key=lambda row: row["cost"][kind]["median"])
        ]
        return f"<figure>{_tag('figcaption', words)}{svg.ratios(rows, width=370, described=words)}</figure>"

    panels = "".join(map(panel, ("prefill", "decode", "training")))
    return _section(say("cost", done), _tag("p", say("cost text", done)) + f'<div class="panels">{panels}</div>')


def _facts(done: Done) -> str:
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "both": lambda exact: _order(exact["order"]["bidirectional"], done),
        "causal": lambda exact: _order(exact["order"]["causal"], done),
        "shift": lambda exact: _holds(exact["shift"], done),
        "decode": lambda exact: _holds(exact["decode"], done),
        "parameters": lambda exact: f"{exact['parameters']:,}",
        "bytes": lambda exact: f"{4 * exact['parameters']:,}",
        "tables": lambda exact: f"{exact['table_bytes_per_token']:,.0f}",
        "largest": lambda exact: largest(exact).replace("any", _span(say("any", done))),
        "sites": lambda exact: ", ".join(site.lower() for site in exact["sites"]) or "–",
    }

    def cells(row: Row) -> list[str]:
        if row["exact"] is None:
            return [f'<td class="none" colspan="{len(columns)}">{_span(state_words(row["trials"][0]["state"]))}</td>']
        return [f"<td>{write(row['exact'])}</td>" for write in columns.values()]

    head = [_span(say("encoding", done)), *(_span(say(f"fact {name}", done)) for name in columns)]
    body = [[_span(title(row)) + f"<small>{_formula(row)}</small>", *cells(row)] for row in done["rows"]]
    return _section(say("facts", done), _tag("p", say("facts text", done)) + _table("facts", head, body))


def _formula(row: Row) -> str:
    return html.escape(catalogue.BY_NAME[row["encoding"]].formula)


def _order(value: float | None, done: Done) -> str:
    if value is None:
        return _span(say("causal only", done))
    return f'<span class="no">{small(value)}</span>' if value <= SAME else small(value)


def _holds(value: float, done: Done) -> str:
    kind = "yes" if value <= SAME else "no"
    return f'<span class="{kind}">{_span(say(kind, done))}</span> <small>{small(value)}</small>'


def _how(done: Done) -> str:
    machine, text = done["machine"], done["text"]
    versions = f"posenc {done['posenc']} (code {done['code'][:12]}), torch {machine['torch']}, Python {machine['python']}"
    notes = "".join(f"<br>{_span(Words(**note))}" for note in text["notes"])
    rows = {
        "command": f"<code>{html.escape(done['command'])}</code>",
        "training": _span(say("how training text", done)),
        "seeds": _span(say("how seeds text", done)),
        "text": f"{_span(say('how text text', done))}<br><code>sha256 {text['sha256']}</code>{notes}",
        "versions": html.escape(versions),
        "machine": _span(say("how machine text", done)),
    }
    body = "".join(f"<tr><th>{_span(say(f'how {name}', done))}</th><td>{value}</td></tr>" for name, value in rows.items())
    mind = "".join(_tag("li", words) for words in _to_mind(done))
    return _section(say("how", done), f'<table class="how">{body}</table><ul class="small">{mind}</ul>')


def _to_mind(done: Done) -> Iterator[Words]:
    yield say("mind size", done)
    yield say("mind gate", done)
    names = {row["name"] for row in done["rows"]}
    if any(row["randomized"] for row in done["rows"]):
        yield say("mind random", done)
    if "learned" in names:
        yield say("mind learned", done)
    if "t5" in names:
        reach = catalogue.create("t5", n_heads=1).configuration["max_distance"]
        if reach > done["recipe"]["length"]:
            yield say("mind t5", done, reach=reach)


# Pieces ---------------------------------------------------------------------------------------------------------------


def _section(heading: Words, content: str) -> str:
    return f"<section>{_tag('h2', heading)}{content}</section>\n"


def _tag(tag: str, words: Words, kind: str = "") -> str:
    opening = f'{tag} class="{kind}"' if kind else tag
    return f"<{opening}>{_span(words)}</{tag}>"


def _span(words: Words) -> str:
    en, zh = map(html.escape, words)
    return en if en == zh else f'<span class="en" lang="en">{en}</span><span class="zh" lang="zh">{zh}</span>'


def _table(kind: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """`head` and the first of every row become headings; the other cells are given whole."""
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    rows = "".join(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>' for name, *cells in body)
    return f'<div class="scroll"><table class="{kind}"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _both(chart: svg.Chart, height: int) -> str:
    """One for wide windows and one for narrow ones, where letters would become too small."""
    wide, narrow = svg.lines(chart, width=940, height=height), svg.lines(chart, width=370, height=430)
    return f'<div class="chart wide">{wide}</div><div class="chart narrow">{narrow}</div>'
