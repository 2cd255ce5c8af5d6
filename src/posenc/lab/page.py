"""The comparison as one HTML file that asks nothing of the network: pictures inline, light and dark, both languages."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from posenc import catalogue
from posenc.bilingual import Words
from posenc.lab.prose import factor, largest, say, small, state_words
from posenc.lab.summary import bits, ends, listed, needs, sentences, title
from posenc.lab.trial.fp64_properties import SAME
from posenc.lab.views import svg
from posenc.lab.views.html import both, document, header, heat, section, span, table, tag

Done = Mapping[str, Any]
Row = Mapping[str, Any]

KINDS = ("flat", "fades", "breaks", "home")


def page(done: Done) -> str:
    """The whole file."""
    parts = (_header, _answer, _curves, _heat, _places, _costs, _facts, _how)
    style, script = (files("posenc.lab").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    body = "".join(part(done) for part in parts)
    return document("posenc compare", body, styles=[style], scripts=[script])


# Sections -------------------------------------------------------------------------------------------------------------


def _header(done: Done) -> str:
    return header("posenc compare", say("title", done), say("lead", done))


def _answer(done: Done) -> str:
    cards = "".join(
        '<div class="card">' + "".join(tag("div", words, kind) for kind, words in need._asdict().items()) + "</div>"
        for need in needs(done)
    )
    said = "".join(tag("li", sentence) for sentence in sentences(done))
    return section(say("answer", done), f'<div class="cards">{cards}</div><ul class="said">{said}</ul>')


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
        series,
        [(length, str(length)) for length in lengths],
        say("context", done),
        say("bits", done),
        say("curves", done),
        trained=svg.Mark(lengths[0], say("trained", done)),
        levels=[svg.level(done["byte_pairs"], lengths, say("pairs", done))],
        x_log=True,
    )
    picture = _legend(done) + both(chart, 470) if drawn else ""
    return section(say("curves", done), tag("p", say("curves text", done)) + picture + _left_out(done))


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
    items = (f'<span class="{kind}"><i></i>{span(say(f"kind {kind}", done))}</span>' for kind in KINDS if kind in present)
    return f'<p class="legend">{"".join(items)}</p>'


def _left_out(done: Done) -> str:
    home, _ = ends(done)

    def number(row: Row) -> str:
        cell = row["bits"][home]
        return f"{cell['mean']:.2f}" if "mean" in cell else cell["state"]

    rows = [row for row in done["rows"] if not row["learnt"]]
    return tag("p", say("not drawn", done, rows=listed(rows, number)), "small") if rows else ""


def _heat(done: Done) -> str:
    home, far = ends(done)
    lengths = done["recipe"]["lengths"]
    means = [cell["mean"] for row in done["rows"] for cell in row["bits"].values() if "mean" in cell]
    low, high = min(means, default=0.0), max(means, default=1.0)

    def cell(row: Row, length: int) -> str:
        value = row["bits"][str(length)]
        if "state" in value:
            return f'<td class="none">{span(state_words(value["state"]))}</td>'
        share = (value["mean"] - low) / max(high - low, 1e-9)
        seeds = " ".join(f"{seed:.2f}" for seed in value["seeds"])
        faint = "" if row["learnt"] else ' class="unlearnt"'
        return f'<td{faint} style="{heat(share)}"><b>{value["mean"]:.2f}</b><small>{seeds}</small></td>'

    def worth(row: Row) -> tuple[int, float]:
        if "mean" in row["bits"][far]:
            return 0, bits(row, far)
        if "mean" in row["bits"][home]:
            return 1 if row["learnt"] else 2, bits(row, home)
        return 3, 0.0

    head = [span(say("encoding", done)), *(f"{length}<small>{length // lengths[0]}×</small>" for length in lengths)]
    body = [
        [span(title(row)), *(cell(row, length) for length in lengths), f"<td>{factor(row)}</td>"]
        for row in sorted(done["rows"], key=worth)
    ]
    cells = table("heat", [*head, span(say("flat to", done))], body)
    return section(say("heat", done), tag("p", say("heat text", done)) + cells)


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
        say("place", done),
        say("bits", done),
        say("places", done),
        trained=svg.Mark(done["recipe"]["length"], say("trained", done)),
        x_log=False,
    )
    return section(say("places", done), tag("p", say("places text", done)) + both(chart, 400))


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
        return f"<figure>{tag('figcaption', words)}{svg.ratios(rows, width=370, described=words)}</figure>"

    panels = "".join(map(panel, ("prefill", "decode", "training")))
    return section(say("cost", done), tag("p", say("cost text", done)) + f'<div class="panels">{panels}</div>')


def _facts(done: Done) -> str:
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "both": lambda exact: _order(exact["order"]["bidirectional"], done),
        "causal": lambda exact: _order(exact["order"]["causal"], done),
        "shift": lambda exact: _holds(exact["shift"], done),
        "decode": lambda exact: _holds(exact["decode"], done),
        "parameters": lambda exact: f"{exact['parameters']:,}",
        "bytes": lambda exact: f"{4 * exact['parameters']:,}",
        "tables": lambda exact: f"{exact['table_bytes_per_token']:,.0f}",
        "largest": lambda exact: largest(exact).replace("any", span(say("any", done))),
        "sites": lambda exact: ", ".join(site.lower() for site in exact["sites"]) or "–",
    }

    def cells(row: Row) -> list[str]:
        if row["exact"] is None:
            return [f'<td class="none" colspan="{len(columns)}">{span(state_words(row["trials"][0]["state"]))}</td>']
        return [f"<td>{write(row['exact'])}</td>" for write in columns.values()]

    head = [span(say("encoding", done)), *(span(say(f"fact {name}", done)) for name in columns)]
    body = [[span(title(row)) + f"<small>{_formula(row)}</small>", *cells(row)] for row in done["rows"]]
    return section(say("facts", done), tag("p", say("facts text", done)) + table("facts", head, body))


def _formula(row: Row) -> str:
    return html.escape(catalogue.BY_NAME[row["encoding"]].formula)


def _order(value: float | None, done: Done) -> str:
    if value is None:
        return span(say("causal only", done))
    return f'<span class="no">{small(value)}</span>' if value <= SAME else small(value)


def _holds(value: float, done: Done) -> str:
    kind = "yes" if value <= SAME else "no"
    return f'<span class="{kind}">{span(say(kind, done))}</span> <small>{small(value)}</small>'


def _how(done: Done) -> str:
    machine, text = done["machine"], done["text"]
    versions = f"posenc {done['posenc']} (code {done['code'][:12]}), torch {machine['torch']}, Python {machine['python']}"
    notes = "".join(f"<br>{span(Words(**note))}" for note in text["notes"])
    rows = {
        "command": f"<code>{html.escape(done['command'])}</code>",
        "training": span(say("how training text", done)),
        "seeds": span(say("how seeds text", done)),
        "text": f"{span(say('how text text', done))}<br><code>sha256 {text['sha256']}</code>{notes}",
        "versions": html.escape(versions),
        "machine": span(say("how machine text", done)),
    }
    body = "".join(f"<tr><th>{span(say(f'how {name}', done))}</th><td>{value}</td></tr>" for name, value in rows.items())
    mind = "".join(tag("li", words) for words in _to_mind(done))
    return section(say("how", done), f'<table class="how">{body}</table><ul class="small">{mind}</ul>')


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
