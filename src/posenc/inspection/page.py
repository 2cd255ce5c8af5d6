"""The report as a terminal page: encodings, their figures, what happens beyond the trained length, remarks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from posenc.inspection.extension import Extension
from posenc.inspection.remarks import listed
from posenc.wrapped import Wrapped

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
Row = tuple[str, str, str]  # what, value, who said it


def show(console: Console, data: dict[str, Any], extensions: list[Extension]) -> None:
    for part in data["parts"]:
        _part(console, part)
    for part in data["without_attention"]:
        name = f"{part['part']} · {part['family']}" if part["part"] else part["family"]
        console.print(Text.assemble((name, "bold"), f"   positions: {part['coordinates']}"))
    _remarks(console, data["remarks"])
    if "weights" in data:
        _weights(console, data["weights"])
    if extensions:
        _extensions(console, extensions)


def _part(console: Console, part: dict[str, Any]) -> None:
    name = f"{part['part']} · {part['family']}" if part["part"] else part["family"]
    heads = f", {part['n_heads']} heads of {part['d_head']} channels" if part["n_heads"] and part["d_head"] else ""
    trained = f", trained length {part['trained_length']:,}" if part["trained_length"] else ""
    layers = "1 layer" if part["n_layers"] == 1 else f"{part['n_layers']} layers"
    console.print(Text.assemble((name, "bold"), f"   {layers}{heads}{trained}"))
    console.print(Wrapped(f"positions: {part['coordinates']}", "dim"))
    console.print()
    if part["input"]:
        console.print("  [bold]input[/bold]")
    for encoding in part["input"]:
        _encoding(console, encoding, part)
    for group in part["groups"]:
        _group(console, group, part)
    console.print()


def _group(console: Console, group: dict[str, Any], part: dict[str, Any]) -> None:
    layers = _which(group["layers"], part["n_layers"])
    seen = "causal" if group["causal"] else "both directions"
    window = f", a window of {group['window']:,} tokens" if group["window"] else ""
    window += f", in chunks of {group['chunk']:,} tokens" if group["chunk"] else ""
    heading = Text.assemble((f"  {layers}", "bold"), f"   {group['kind'].replace('_', ' ')}, {seen}{window}")
    console.print(heading)
    if not group["encodings"]:
        console.print("    from the embeddings only" if part["input"] else "    no positions")
    for encoding in group["encodings"]:
        _encoding(console, encoding, part)


def _which(layers: list[int], n_layers: int) -> str:
    others = [number for number in range(n_layers) if number not in layers]
    if not others:
        return "every layer"
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if 2 < len(others) < len(layers) and len({b - a for a, b in itertools.pairwise(others)}) == 1:
        return f"every layer but {listed(others)}"
    return f"layers {listed(layers)}"


def _encoding(console: Console, encoding: dict[str, Any], part: dict[str, Any]) -> None:
    console.print(Text.assemble("    ", (encoding["encoding"], "bold blue"), f"  {sentence(encoding)}"))
    for rows in (list(_does(encoding)), list(_means(encoding)), list(_beyond(encoding))):
        if rows:
            console.print(_rows(rows))


def _rows(rows: list[Row]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=4)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=3)
    table.add_column(ratio=1, style="dim italic")
    for what, value, said_by in rows:
        table.add_row("", what, Wrapped(value), Wrapped(said_by))
    return table


def sentence(encoding: dict[str, Any]) -> str:
    """One line about an encoding."""
    return SENTENCES.get(encoding["encoding"]) or encoding["idea"].rstrip(".")


SENTENCES = {
    "RoPE": "queries and keys are rotated by an angle proportional to their position",
    "Learned": "a learned vector for each position is added to the embeddings",
    "Sinusoidal": "sines and cosines of the position are added to the embeddings",
    "ALiBi": "scores decrease linearly with distance, with a slope for each head",
    "T5": "scores get a learned number for each head and bucket of distance",
    "Shaw": "scores get a product of the query with a learned vector for each distance",
    "TransformerXL": "scores get a product of the query with transformed sinusoids of the distance",
}


def _does(encoding: dict[str, Any]) -> Iterator[Row]:
    said, arguments = encoding["said_by"], encoding["arguments"]
    rotation = encoding.get("rotation")
    if rotation:
        yield "pairs", _pairs(arguments, rotation), said.get("rotary_dim", "")
        yield "base", f"{rotation['base']:,.10g}", said.get("base", "")
        if rotation["kind"] != "rotary":
            numbers = ", ".join(f"{name} {_number(value)}" for name, value in rotation["parameters"].items())
            keys = sorted({said[name].rpartition(".")[0] or said[name] for name in rotation["parameters"] if name in said})
            yield "scaling", f"{rotation['kind']}: {numbers}", ", ".join(keys)
        if rotation["axes"]:
            shares = [rotation["axes"].count(axis) for axis in range(max(rotation["axes"]) + 1)]
            yield "axes", f"{len(shares)} coordinates for each token; {', '.join(map(str, shares))} pairs read them", ""
        yield "cos and sin", f"× {rotation['cos_sin_scale']:.7g}", rotation["cos_sin_scale_from"]
        yield "softmax scale", f"× {rotation['softmax_scale']:.7g}", rotation["softmax_scale_from"]
    for name, value in arguments.items():
        if not (rotation and name in ("d_head", "layout", "trailing", "returns", "reverse", "sides")):
            yield name.replace("_", " "), _number(value), said.get(name, "")
    if encoding["note"]:
        yield "note", encoding["note"], ""


def _pairs(arguments: dict[str, Any], rotation: dict[str, Any]) -> str:
    d_head, turning = arguments["d_head"], 2 * len(rotation["frequencies"])
    which = "all" if turning == d_head else f"the {'last' if arguments.get('trailing') else 'first'} {turning} of"
    how = {"half": "half: channel i pairs with i + d/2", "interleaved": "interleaved: channel 2i pairs with 2i + 1"}
    text = f"{how[arguments.get('layout', 'interleaved')]}; {which} {d_head} channels"
    if arguments.get("reverse"):
        text += ", the other way round"
    sides = [side for side in arguments.get("sides", []) if side in ("value", "output")]
    return text + (f"; {' and '.join(sides)} too" if sides else "")


def _means(encoding: dict[str, Any]) -> Iterator[Row]:
    found = encoding.get("meaning")
    if not found:
        return
    moving = found["pairs"] - found["still"]
    yield "wavelengths", f"{_long(found['shortest'])} … {_long(found['longest'])} positions", ""
    if found["still"]:
        yield "", f"{found['still']} of {found['pairs']} pairs never rotate", ""
    where = f", from pair {found['first_unfinished']} on" if found["unfinished"] else ""
    yield (
        "unfinished",
        f"{found['unfinished']} of {moving} rotating pairs do not complete a turn in {found['length']:,}{where}",
        "",
    )
    yield "largest angle", f"{found['largest_angle']:,.6g} rad at position {found['length'] - 1:,}", ""
    yield (
        "error there",
        f"{found['float32_error']:.1e} with fp32 angles, {found['bfloat16_error']:.1e} with bf16 tables",
        "",
    )


def _beyond(encoding: dict[str, Any]) -> Iterator[Row]:
    beyond = encoding.get("beyond")
    if not beyond:
        return
    what = f"at {beyond['length']:,}:"
    if "text" in beyond:
        yield what, beyond["text"], ""
    elif beyond["pairs"]:
        yield (
            what,
            f"{len(beyond['pairs'])} of {beyond['of']} pairs have angles not seen in training: {listed(beyond['pairs'])}",
            "",
        )
    else:
        yield what, "no pair has angles not seen in training", ""


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if isinstance(value, list) and len(value) > 6:
            return f"[{_number(value[0])}, {_number(value[1])}, … {_number(value[-1])}] ({len(value)})"
        return str(value).replace("'", "")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.7g}"


def _long(wavelength: float | None) -> str:
    if wavelength is None:
        return "∞"
    return f"{wavelength:.3g}" if wavelength < 100 else f"{wavelength:,.0f}" if wavelength < 1e7 else f"{wavelength:.3g}"


def _remarks(console: Console, remarks: list[dict[str, str]]) -> None:
    console.print("[bold]remarks[/bold]" if remarks else "no remarks")
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for remark in remarks:
        key = f"{remark['key']}: " if remark["key"] else ""
        table.add_row(Text("  " + remark["grade"], style=COLOURS[remark["grade"]]), Wrapped(key + remark["text"]))
    console.print(table)


def _weights(console: Console, measured: list[dict[str, Any]]) -> None:
    console.print("\n[bold]learned tables[/bold]   mean cosine of rows by distance")
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("weight", "rows", "at 1", "at 8", "at 64", "by distance", "offset", "dead"):
        table.add_column(heading, justify="left" if heading == "weight" else "right", no_wrap=heading != "weight")
    for one in measured:
        alike = one["similarity"]
        lags = [f"{alike[lag]:.3f}" if lag in alike else "–" for lag in ("1", "8", "64")]
        table.add_row(
            Wrapped(one["weight"]),
            f"{one['rows']:,}",
            *lags,
            f"{one['by_distance']:.0%}",
            f"{one['offset_symmetry']:.3f}",
            f"{len(one['dead_rows'])}",
        )
    console.print(table)
    console.print(
        Wrapped(
            "by distance: share of the variance of all cosines that distance alone explains; offset: "
            "0 if a row is equally similar to the k-th row after and before it; dead: rows with a "
            "norm near 0.",
            "dim",
        )
    )


def _extensions(console: Console, extensions: list[Extension]) -> None:
    import json

    first = extensions[0]
    console.print()
    console.print(
        f"[bold]to {first.length:,} positions[/bold]   factor {first.factor:.6g}; frequencies in radians per position"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("", "fastest", "middle", "slowest", "cos/sin", "what it is"):
        table.add_column(heading, justify="left" if heading in ("", "what it is") else "right", overflow="fold")
    rows = [("now", first.before, "")] + [(e.method, e.after, e.note) for e in extensions]
    for name, found, note in rows:
        table.add_row(
            name,
            f"{found[0]:.4g}",
            f"{found[len(found) // 2]:.4g}",
            f"{found[-1]:.4g}",
            f"{found.cos_sin_scale:.5g}",
            Wrapped(note),
        )
    console.print(table)
    for extension in [one for one in extensions if one.fragment]:
        console.print()
        console.print(f"[bold]{extension.method}[/bold]")
        console.print_json(json.dumps(_shortened(extension.fragment)), indent=None)
    if any(len(json.dumps(e.fragment)) > 600 for e in extensions):
        console.print("[dim]long lists are shortened here; --json and --out have them in full[/dim]")


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list) and len(value) > 8:
        return [*value[:3], "…", value[-1]]
    return value
