"""The report as a terminal page: the verdict, the layers with their encodings and figures, findings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from posenc.configs.attached import GIVEN
from posenc.configs.report.extension import Extension, fitting
from posenc.configs.report.labels import LABELS, scaling_name
from posenc.configs.report.names import kind as kind_in_words
from posenc.configs.report.remarks import listed
from posenc.configs.report.runtimes import runtimes
from posenc.configs.report.side_by_side import counted_words
from posenc.configs.spec import BY_AXIS
from posenc.support.languages import Language
from posenc.terminal.wrapped import Wrapped

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
UNSCALED = ("rotary", GIVEN, BY_AXIS, "frequencies.wide.spectrum")
Row = tuple[str, str, str]  # what, value, who said it


class Page:
    """One report in one language.

    verbose   also what each encoding does, its angles and their errors, and what holds for nearly every model
    """

    def __init__(self, console: Console, language: Language = "en", *, verbose: bool = False) -> None:
        self.console, self.language, self.verbose = console, language, verbose

    def say(self, label: str, *values: Any) -> str:
        return LABELS[label].in_language(self.language).format(*values)

    def counted(self, grade: str, count: int) -> str:
        return counted_words(grade, count).in_language(self.language)

    def show(self, data: dict[str, Any], extensions: list[Extension]) -> None:
        self.verdict(data, extended=bool(extensions))
        for part in data["parts"]:
            self.part(part, alone=part["part"] == data["verdict"]["part"])
        for part in data["without_attention"]:
            positions = self.say("positions", part["coordinates"])
            self.console.print(Wrapped(f"{_title(part)}   {positions}"))
        self.remarks(data["remarks"])
        self.general(data["facts"])
        if "weights" in data:
            self.weights(data["weights"])
        if extensions:
            self.extensions(extensions)

    def verdict(self, data: dict[str, Any], extended: bool) -> None:
        """The trained length, the heads, the length at which serving is safe, what fails beyond, and what to do unless
        settings for a longer one follow; one more line where the file has warnings."""
        verdict = data["verdict"]
        failing = {"beyond": verdict["fails"] is not None, "errors": True}
        for name, line in self.verdict_lines(data, extended).items():
            self.console.print(Wrapped(line, "bold" if name == "trained" else "yellow" if failing.get(name) else ""))
        self.console.print()

    def verdict_lines(self, data: dict[str, Any], extended: bool) -> dict[str, str]:
        verdict = data["verdict"]
        family = self.say("by class", data["family"], data["claims"]) if data["claims"] else data["family"]
        if "why" not in verdict:
            return {"trained": f"{family}: {self.say('nothing')}"}
        comma = self.say("comma")
        lengths = [] if verdict["trained"] is None else [self.say("trained", verdict["trained"])]
        if verdict["scaled"] is not None:
            label = "scaled" if verdict["or_only"] is None else "scaled or"
            lengths.append(self.say(label, verdict["scaled"], verdict["by"], verdict["or_only"]))
        elif verdict["by"]:
            lengths.append(self.say("by", verdict["by"]))
        main = next(part for part in data["parts"] if part["part"] == verdict["part"])
        model = family + (f" · {verdict['part']}" if verdict["part"] else "")
        if data["wraps"]:
            model = self.say("wraps", family, verdict["part"], main["family"])
        fails = verdict["fails"]
        longer = self.say("longer", verdict["why"]) if fails is None else self.say("beyond", fails, verdict["why"])
        if verdict["or_fails"] is not None:
            longer += self.say("or beyond", verdict["or_fails"])
        lines = {"trained": f"{model}: {comma.join(lengths) or self.say('not said')}"}
        lines |= {"sizes": self.sizes(main), "safe": self.safe(verdict), "beyond": longer}
        if verdict["errors"]:
            return lines | {"errors": self.say("errors", self.counted("error", verdict["errors"]))}
        if not extended:
            lines["do"] = self.say("do", verdict["remedy"])
        warnings = sum(remark["grade"] == "warning" for remark in data["remarks"])
        return lines | ({"warnings": self.say("warnings", self.counted("warning", warnings))} if warnings else {})

    def sizes(self, part: dict[str, Any]) -> str:
        layers = self.say("layer") if part["n_layers"] == 1 else self.say("layers", part["n_layers"])
        if not part["n_heads"] or not part["d_head"]:
            return layers
        shared = part["n_kv_heads"] not in (None, part["n_heads"])
        label = "heads" if not shared else "one key head" if part["n_kv_heads"] == 1 else "key heads"
        return layers + self.say(label, part["n_heads"], part["d_head"], part["n_kv_heads"])

    def safe(self, verdict: dict[str, Any]) -> str:
        if verdict["usable"] is None:
            return self.say("not safe")
        why = self.say("by scaling", verdict["by"]) if verdict["by"] else self.say("by training")
        return self.say("safe" if verdict["or_only"] is None else "safe or", verdict["usable"], why, verdict["or_only"])

    def part(self, part: dict[str, Any], *, alone: bool) -> None:
        """`alone`: the verdict, which is about this part, has its sizes."""
        self.console.print(Text.assemble((_title(part), "bold"), "" if alone else f"   {self.sizes(part)}"))
        self.console.print(Wrapped(self.say("positions", part["coordinates"]), "dim"))
        self.console.print()
        if part["input"]:
            self.console.print(f"  [bold]{self.say('input')}[/bold]")
        for encoding in part["input"]:
            self.encoding(encoding)
        for group in part["groups"]:
            self.group(group, part)
        if part["code"]:
            self.console.print(_indented(self.say("built by")))
        for line in "\n".join(part["code"]).splitlines():
            self.console.print(Text(f"    {line}", style="cyan"), soft_wrap=True)
        self.console.print()

    def group(self, group: dict[str, Any], part: dict[str, Any]) -> None:
        kind = kind_in_words(group["kind"]).in_language(self.language)
        which = self.which(group["layers"], part["n_layers"])
        comma = self.say("comma")
        if not group["attends"]:
            self.console.print(_indented(f"{which}   {kind}{comma}{self.say('not attention')}", "bold"))
            return
        seen = self.say("causal") if group["causal"] else self.say("both")
        window = self.say("window", group["window"]) if group["window"] else ""
        window += self.say("chunk", group["chunk"]) if group["chunk"] else ""
        self.console.print(_indented(f"{which}   {kind}{comma}{seen}{window}", "bold"))
        if not group["encodings"]:
            self.console.print("    " + self.say("from embeddings" if part["input"] else "no positions"))
        for encoding in group["encodings"]:
            self.encoding(encoding, group)

    def which(self, layers: list[int], n_layers: int) -> str:
        others = [number for number in range(n_layers) if number not in layers]
        if not others:
            return self.say("every layer")
        if len(layers) == 1:
            return self.say("layer n", layers[0])
        if 2 < len(others) < len(layers) and len({b - a for a, b in itertools.pairwise(others)}) == 1:
            return self.say("every layer but", listed(others))
        return self.say("layers n", listed(layers))

    def encoding(self, encoding: dict[str, Any], group: dict[str, Any] | None = None) -> None:
        lines = Table.grid(padding=(0, 2))
        lines.add_column()
        lines.add_column(ratio=1)
        idea = encoding["idea"] if self.verbose or "meaning" not in encoding else ""  # everyone knows RoPE
        lines.add_row(Text("    " + encoding["encoding"], style="bold blue"), Wrapped(idea))
        self.console.print(lines)
        for rows in (list(self.does(encoding)), list(self.means(encoding, group)), list(self.beyond(encoding))):
            if rows:
                self.console.print(_rows(rows))

    def does(self, encoding: dict[str, Any]) -> Iterator[Row]:
        said_by, arguments = encoding["said_by"], encoding["arguments"]
        rotation = encoding.get("rotation")
        if rotation:
            yield self.say("pairs"), self.pairs(arguments, rotation), said_by.get("rotary_dim", "")
            if rotation["kind"] == GIVEN:
                yield self.say("given"), self.say("listed"), said_by.get("frequencies", "")
            else:
                yield self.say("base"), f"{rotation['base']:,.10g}", said_by.get("base", "")
            if rotation["kind"] not in UNSCALED:
                numbers = ", ".join(f"{name} {_number(value)}" for name, value in rotation["parameters"].items())
                keys = sorted(
                    {
                        said_by[name].rpartition(".")[0] or said_by[name]
                        for name in rotation["parameters"]
                        if name in said_by
                    }
                )
                yield (
                    self.say("scaling"),
                    f"{scaling_name(rotation['kind']).in_language(self.language)}: {numbers}",
                    ", ".join(keys),
                )
            if rotation["axes"]:
                shares = [str(rotation["axes"].count(axis)) for axis in range(max(rotation["axes"]) + 1)]
                yield self.say("axes"), self.say("axes are", len(shares), ", ".join(shares)), ""
            for which, label in (("cos_sin_scale", "cos and sin"), ("softmax_scale", "softmax scale")):
                if rotation[which] != 1 or rotation["kind"] == "yarn":
                    yield self.say(label), f"× {rotation[which]:.7g}", rotation[f"{which}_from"]
        for name, value in arguments.items():
            if not (rotation and name in ("d_head", "layout", "trailing", "returns", "reverse", "sides")):
                yield name.replace("_", " "), _number(value), said_by.get(name, "")
        if encoding["note"]:
            yield self.say("note"), encoding["note"], ""

    def pairs(self, arguments: dict[str, Any], rotation: dict[str, Any]) -> str:
        d_head, turning = arguments["d_head"], 2 * len(rotation["frequencies"])
        turning //= arguments.get("n_heads", 1)  # WideRoPE's go on from head to head
        which = "all" if turning == d_head else "last" if arguments.get("trailing") else "first"
        semicolon = "；" if self.language == "zh" else "; "
        text = self.say(arguments.get("layout", "interleaved")) + semicolon + self.say(which, d_head, turning)
        if arguments.get("reverse"):
            text += self.say("reverse")
        sides = [side for side in arguments.get("sides", []) if side in ("value", "output")]
        return text + (self.say("too", self.say("and").join(sides)) if sides else "")

    def means(self, encoding: dict[str, Any], group: dict[str, Any] | None) -> Iterator[Row]:
        meaning = encoding.get("meaning")
        if not meaning:
            return
        yield self.say("wavelengths"), self.say("from to", _long(meaning["shortest"]), _long(meaning["longest"])), ""
        if meaning["still"]:
            yield "", self.say("still", meaning["still"], meaning["pairs"]), ""
        text = self.say("unfinished are", meaning["unfinished"], meaning["pairs"] - meaning["still"], meaning["length"])
        if group and meaning["length"] == (group["window"] or group["chunk"]):
            text += self.say("the window")
        text += self.say("from pair", meaning["first_unfinished"]) if meaning["unfinished"] else ""
        yield self.say("unfinished"), text, ""
        if not self.verbose:
            return
        yield self.say("largest angle"), self.say("angle is", f"{meaning['largest_angle']:,.6g}", meaning["length"] - 1), ""
        yield self.say("error there"), self.say("error is", meaning["float32_error"], meaning["bfloat16_error"]), ""

    def beyond(self, encoding: dict[str, Any]) -> Iterator[Row]:
        beyond = encoding.get("beyond")
        if not beyond:
            return
        what = self.say("at", beyond["length"])
        if "text" in beyond:
            yield what, beyond["text"], ""
            return
        pairs, others = beyond["pairs"], beyond.get("or_pairs") or []
        text = self.say("new", len(pairs), beyond["of"], listed(pairs)) if pairs else self.say("none new")
        yield what, text + (self.say("or new", len(others), listed(others)) if others != pairs and others else ""), ""

    def remarks(self, remarks: list[dict[str, str]]) -> None:
        self.console.print(f"[bold]{self.say('findings' if remarks else 'no findings')}[/bold]")
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        for remark in remarks:
            key = f"{remark['key']}: " if remark["key"] else ""
            grade = Text(f"  {self.say('grade ' + remark['grade'])}", style=COLOURS[remark["grade"]])
            table.add_row(grade, Wrapped(key + remark["text"]))
        self.console.print(table)

    def general(self, facts: list[str]) -> None:
        if not self.verbose:
            self.console.print(Wrapped(f"  {self.say('more facts')}", "dim"))
            return
        if not facts:
            return
        self.console.print(f"\n[bold]{self.say('facts')}[/bold]")
        for fact in facts:
            self.console.print(_indented(fact))

    def weights(self, measured: list[dict[str, Any]]) -> None:
        self.console.print(f"\n[bold]{self.say('learned tables')}[/bold]   {self.say('mean cosine')}")
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        for number, heading in enumerate(self.say("columns").split(",")):
            table.add_column(heading, justify="right" if number else "left", no_wrap=number > 0)
        for row in measured:
            alike = row["similarity"]
            lags = [f"{alike[lag]:.3f}" if lag in alike else "–" for lag in ("1", "8", "64")]
            table.add_row(
                Wrapped(row["weight"]),
                f"{row['rows']:,}",
                *lags,
                f"{row['by_distance']:.0%}",
                f"{row['offset_symmetry']:.3f}",
                f"{len(row['dead_rows'])}",
            )
        self.console.print(table)
        self.console.print(Wrapped(self.say("explained"), "dim"))

    def extensions(self, extensions: list[Extension]) -> None:
        """The method that fits the model whole, the others by name; of none that fits, why."""
        chosen = fitting(extensions)
        first = chosen or extensions[0]
        self.console.print(f"\n[bold]{self.say('to', first.length)}[/bold]   {self.say('factor', first.factor)}")
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        headings = self.say("frequencies").split(",")
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="right" if number else "left")
        for name, frequencies in ((self.say("now"), first.before), *([(chosen.method, chosen.after)] if chosen else [])):
            shown = (frequencies[0], frequencies[len(frequencies) // 2], frequencies[-1])
            table.add_row(name, *(f"{frequency:.4g}" for frequency in shown), f"{frequencies.cos_sin_scale:.5g}")
        self.console.print(table)
        if chosen is None:
            for extension in extensions:
                self.console.print(_indented(f"{extension.method}: {extension.note.in_language(self.language)}"))
            return
        self.console.print(f"\n[bold]{chosen.method}[/bold]")
        self.console.print(_indented(chosen.note.in_language(self.language)))
        self.console.print_json(json.dumps(_shortened(chosen.fragment)), indent=None)
        self.runtimes(chosen)
        if len(json.dumps(chosen.fragment)) > 600:
            self.console.print(f"[dim]{self.say('shortened')}[/dim]")
        others = [e.method if e.fragment else self.say("not here", e.method) for e in extensions if e is not chosen]
        if others:
            self.console.print(Wrapped(self.say("other methods", self.say("comma").join(others))))

    def runtimes(self, extension: Extension) -> None:
        """How to run the method."""
        self.console.print(f"\n[bold]{self.say('run', extension.method)}[/bold]")
        for runtime in runtimes(extension):
            ignores = self.say("ignores", runtime.ignores.in_language(self.language))
            self.console.print(_indented(f"{runtime.name} {runtime.version} ({runtime.date}){self.say('comma')}{ignores}"))
            if runtime.command:
                self.console.print(Text(f"    {runtime.command}", style="cyan"), soft_wrap=True)


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Wrapped(text, style), (0, 0, 0, 2))


def _title(part: dict[str, Any]) -> str:
    return f"{part['part']} · {part['family']}" if part["part"] else str(part["family"])


def _rows(rows: list[Row]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=4)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(ratio=3)
    table.add_column(ratio=1, style="dim italic")
    for what, value, said_by in rows:
        table.add_row("", what, Wrapped(value), Wrapped(said_by))
    return table


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


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list) and len(value) > 8:
        return [*value[:3], "…", value[-1]]
    return value
