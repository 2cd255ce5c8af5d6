"""Which encoding to take: the first row of rules.toml that holds for a few answers, with its figures and how to use it.

Reading it imports no torch.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from posenc import frequencies
from posenc.catalogue.built import facts
from posenc.catalogue.choose import costs
from posenc.catalogue.choose.reading import METHODS, Reading, reading
from posenc.catalogue.entry import Entry, Kind
from posenc.catalogue.index import LAST, USERS, Found, fold
from posenc.catalogue.lookup import BY_NAME, entry_of, find, hint, without_positions
from posenc.catalogue.say import say
from posenc.support.checks import shown
from posenc.support.data_files import read
from posenc.support.languages import Words, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

Domain = Literal[
    "text", "image", "video", "diffusion", "multimodal", "audio", "series", "graph", "points", "arithmetic", "algorithm"
]
Model = Literal["decoder", "encoder", "encoder-decoder"]
Start = Literal["scratch", "trained"]
Kernel = Literal["any", "slopes", "plain"]
KINDS: dict[str, tuple[str, ...]] = {
    name: get_args(kind) for name, kind in (("domain", Domain), ("model", Model), ("start", Start), ("kernel", Kernel))
}
ENCODERS = ("image", "video", "diffusion", "audio", "graph", "points")
TABLES = ("learned", "vit", "learned_2d")
OF: dict[Kind, str] = {"none": "none", "added": "added", "relative": "bias", "biased": "bias", "rotated": "rope",
                       "scaled": "rope", "preset": "rope"}  # fmt: skip
OWN = dict.fromkeys(("convolutional", "conditional", "lepe"), "convolution") | {"irope": "chunks", "detr": "normalized"}
OWN |= dict.fromkeys(("fox", "bidirectional_fox", "path_fox", "stick_breaking"), "gates") | {"rope_mixed": "mixed"}
"""Of trained encodings that need advice of their own, not that of their kind."""
VIDEO = ("opensora",)
"""How the names of diffusion models begin that generate video and have no reader."""
METHOD = {name: name for name in METHODS} | {"dynamic": "yarn", "adjusted_base": "ntk"}
"""The method of posenc inspect --extend-to for a name: code that reads yarn reads dynamic; a larger base is its ntk."""
MARKS = {"not learnt": say("not learnt"), "still improving": say("still improving")}
"""Why an encoding of a table of figures is not ranked."""
AXES = ("riflex", "dype")
"""What changes one coordinate and leaves the others."""
EXAMPLE = {"batch": 2, "length": 16, "height": 4, "width": 4, "frames": 4, "text": 8, "fps": 24}
"""Sizes of printed code."""
Rule = dict[str, Any]


def matched(word: str) -> Found | None:
    """What a model, or an encoding, is found by. What others do to a trained model ("topic") is not its own, nor is how its
    tokens are numbered: FLUX has RoPE on axes. A temperature stands beside what it has: Llama 4 has iRoPE."""
    matches = [match for match in find(word) if match.term.role != "topic" and match.entry.kind != "positions"]
    return min(matches, key=lambda match: match.entry.kind == "tempered", default=None)


def _numbers_tokens(word: str) -> bool:
    """Whether it is a model of which only the numbers of its tokens are known: InternVL3 has V2PE."""
    return any(match.term.role in USERS and not match.guess for match in find(word))


def own_of(word: str) -> Entry | None:
    """The entry of a model, or of an encoding."""
    return match.entry if (match := matched(word)) else None


def scaling_of(word: str) -> Entry | None:
    """The scaling that a model's own configuration has already: YaRN of gpt-oss. Not one that it may be given."""
    known = (match for match in find(word) if not match.guess and match.term.role != "topic" and match.term.place < LAST)
    scaled = (match.entry for match in known if match.entry.kind == "scaled")
    return next((entry for entry in scaled if "factor" in facts(entry)["options"]), None)


@dataclass(frozen=True)
class Answers:
    """The answers to the questions: what the encoding is for.

    domain   what the tokens are. diffusion: patches of an image that is generated; multimodal: words and patches in one
             sequence; series: a time series; points: coordinates in space; arithmetic: digits; algorithm: counting,
             copying, recall
    model    decoder: tokens see earlier ones only; encoder; encoder-decoder; empty: what the domain mostly has
    start    scratch: the model is trained with it; trained: a trained model is to be used as it is, or changed
    of       the trained model or its encoding, by any name that `posenc list` finds; empty: RoPE, or the grid of a ViT
    trained  tokens of a training example
    wanted   tokens of the longest example in use; None: as in training
    tuned    whether a trained model is trained further
    kernel   plain: queries, keys, values and a causal mask; slopes: ALiBi's slopes too; any: a bias of any kind
    read     what the reader says of the trained model's own file; None: what it says of a model of that name

    Raises ValueError, naming the answer, for one that there is not.
    """

    domain: Domain = "text"
    model: Model | Literal[""] = ""
    start: Start = "scratch"
    of: str = ""
    trained: int = 2048
    wanted: int | None = None
    tuned: bool = True
    kernel: Kernel = "any"
    read: Reading | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, kinds in KINDS.items():
            if (got := getattr(self, name)) not in kinds and not (name == "model" and got == ""):
                raise ValueError(f"{name}: expected one of {', '.join(kinds)}, got {shown(got)}")
        for name in ("trained", "wanted"):
            got = getattr(self, name)
            if not (got is None and name == "wanted") and (type(got) is not int or got < 1):
                raise ValueError(f"{name}: expected a whole number from 1, got {shown(got)}")
        if not isinstance(self.of, str):
            raise ValueError(f"of: expected the name of a model or of an encoding, got {shown(self.of)}")
        if self.of and not (self.reading or own_of(self.of) or without_positions(self.of) or _numbers_tokens(self.of)):
            raise ValueError(
                f"of: no model and no encoding is called {shown(self.of)}{hint(self.of)}; posenc list --all shows all names"
            )

    @property
    def factor(self) -> float:
        """The length wanted over the trained one."""
        return (self.wanted or self.trained) / self.trained

    @property
    def causal(self) -> bool:
        return bool(self.told["model"] == "decoder")

    @cached_property
    def entry(self) -> Entry:
        """The encoding of the trained model; of a model whose encoding has no name, how it numbers tokens."""
        name = self.read.entry if self.read else self.of
        entry = (own_of(name) or entry_of(name)) if name else None
        return entry or BY_NAME["vit" if self.domain == "image" else "rope"]

    @cached_property
    def reading(self) -> Reading | None:
        """What the trained model's reader says; None for an encoding, and a model without a reader."""
        return self.read or (reading(self.of) if self.of else None)

    @property
    def scaling(self) -> Entry | None:
        """The scaling that the trained model has already."""
        return scaling_of(self.of) if self.reading is None else BY_NAME.get(self.reading.scaled)

    @property
    def _of(self) -> str:
        """The kind of the trained model's encoding: a fixed bias has no table that ends."""
        if self.of and not self.read and without_positions(self.of):
            return "nothing"
        if self.reading and (known := self.reading.kind(self.domain)):
            return known
        if self.entry.kind == "biased" and "parameters" not in self.entry.needs:
            return "fixed"
        known = "table" if self.entry.name in TABLES else OWN.get(self.entry.name) or OF.get(self.entry.kind, "other")
        shared = self.reading is not None and self.reading.call and not self.reading.axes
        return "other" if shared and known == "rope" else known

    @cached_property
    def told(self) -> dict[str, Any]:
        """What the rows of rules.toml ask for. An image of fewer patches is another size too."""
        longer = self.factor != 1 if self.domain == "image" else self.factor > 1
        video = self.reading.video if self.reading else fold(self.of).startswith(VIDEO)
        makes_video = self.domain == "diffusion" and video
        return {
            "domain": "video" if makes_video else self.domain,
            "model": self.model or ("encoder" if self.domain in ENCODERS else "decoder"),
            "start": self.start,
            "of": self._of,
            "length": "longer" if longer else "same",
            "factor": self.factor,
            "tuned": self.tuned,
            "kernel": self.kernel,
        }


class Advice(NamedTuple):
    """One row of rules.toml, for some answers.

    take      names, the first advice first; none: nothing is to be changed
    why       the reason; source: the paper, or the model, that it is from
    measured  our figures of these names, each with its folder
    lacking   names of which none of these has a figure
    breaks    where the first one breaks, and costs, its measured time; None where nothing is taken or nothing was measured
    use       Python for the first one; the command that reads the model's configuration, where only that has what it needs
    replaces  what a new scaling does to the one that the trained model has; that its code does not take the first name of
              the row; that it has no attention; None where there is nothing to say
    """

    take: tuple[str, ...]
    why: Words
    source: str
    measured: tuple[Words, ...]
    lacking: tuple[str, ...]
    breaks: Words | None
    costs: Words | None
    use: str
    replaces: Words | None = None

    def as_json(self) -> dict[str, Any]:
        words = {"why": self.why.as_dict(), "measured": [words.as_dict() for words in self.measured]}
        return {"take": list(self.take), **words, "source": self.source,
                "breaks": self.breaks and self.breaks.as_dict(), "costs": self.costs and self.costs.as_dict(),
                "use": self.use, "replaces": self.replaces and self.replaces.as_dict()}  # fmt: skip


@cache
def table() -> dict[str, Any]:
    """rules.toml: `rule`, the rows; `measures`; `use`; `of_a_model` and `of_axes` for one whose reader is known."""
    return read(Path(__file__).with_name("rules.toml"))


def holds(rule: Rule, told: dict[str, Any]) -> bool:
    """Whether a row holds for what is told; what is not told may be anything."""
    for name, wanted in rule["when"].items():
        answer = told.get(name)
        if answer is None:
            continue
        if answer > wanted if name == "factor" else answer not in wanted if isinstance(wanted, list) else answer != wanted:
            return False
    return True


def recommend(answers: Answers) -> Advice:
    """The advice of the first row that holds."""
    rule = next(rule for rule in table()["rule"] if holds(rule, answers.told))
    take = taken(tuple(rule["take"]), answers)
    if answers.start == "trained" and not take and answers.of and answers.told["of"] != "nothing":
        take = (answers.entry.name,)
    measures = [table()["measures"][name] for name in rule.get("measures", ())]
    measured = tuple(_figures(measure, take) for measure in measures)
    why = Words(rule["en"], rule["zh"])
    lacking = tuple(name for name in take if not any(name in measure["figures"] for measure in measures))
    notes = list[Words]()
    if answers.told["of"] == "nothing":
        notes.append(say("{model} has no attention, and so no positional encoding.", model=answers.of))
    if not take:
        return Advice(take, why, rule["source"], measured, lacking, None, None, "", notes[0] if notes else None)
    breaks = BY_NAME[take[0]].page.breaks
    if answers.reading and rule["take"] and rule["take"][0] not in take:
        notes.append(
            say(
                "The code of {model} does not take {title}; posenc inspect says why.",
                model=answers.reading.name,
                title=BY_NAME[rule["take"][0]].title,
            )
        )
    if (scaling := answers.scaling) and answers.told["length"] == "longer" and take[0] in METHOD:
        notes.append(
            say(
                "{model} has {title} already. A new scaling replaces it: its factor counts from the length before {title} "
                "(original_max_position_embeddings).",
                model=answers.read.name if answers.read else answers.of,
                title=scaling.title,
            )
        )
    replaces = joined(notes, " ", "") if notes else None
    code = use(take[0], answers, changes=bool(rule["take"]))
    return Advice(take, why, rule["source"], measured, lacking, breaks, cost(take[0]), code, replaces)


def taken(names: tuple[str, ...], answers: Answers) -> tuple[str, ...]:
    """The names of a row that the code of the trained model takes. Where it does not take the first, which is a scaling,
    another scaling comes first."""
    model = answers.reading
    if model is None or model.methods is None or answers.start != "trained":
        return names
    fit = [name for name in names if METHOD.get(name) in (None, *model.methods)]
    fit = [name for name in fit if name not in table()["of_a_model"] or model.layer]
    if names and names[0] in METHOD and names[0] not in fit:
        own = [name for name in fit if name in METHOD] or [name for name in ("ntk", "longrope") if name in model.methods]
        fit = [*own, *(name for name in fit if name not in own)]
    return tuple(fit)


def _figures(measure: dict[str, Any], take: tuple[str, ...]) -> Words:
    """The figures of the names, with RoPE's and, of the others, the best beyond the trained length.

    Those that had not learnt or still improved are marked; of the others the pairs are named that no test told apart.
    """
    figures = measure["figures"]
    best = (min if measure["unit"] == "bits" else max)(figures, key=lambda name: figures[name][1])
    names = [name for name in dict.fromkeys((*take, best, "rope")) if name in figures]
    form = ".2f" if measure["unit"] == "bits" else "g"
    unranked = measure.get("unranked", {})
    each = [Words(f"{name} {figures[name][0]:{form}}→{figures[name][1]:{form}}") for name in names]
    marks = [MARKS[unranked[name]] if name in unranked else None for name in names]
    each = [say("{figure} ({mark})", figure=of, mark=mark) if mark else of for of, mark in zip(each, marks, strict=True)]
    pairs = combinations((name for name in names if name not in unranked), 2)
    undecided = [Words(f"{a} – {b}") for a, b in pairs if [a, b] not in measure["apart"] and [b, a] not in measure["apart"]]
    shown = joined(each, "; ", "；")
    if undecided:
        shown = say("{shown}; undecided: {pairs}", shown=shown, pairs=joined(undecided, ", ", "、"))
    return say(
        "{of}, {layers} layers of width {width}, {unit}, at {near} (trained) → {far}: {shown} ({source})",
        of=Words(measure["of"], measure["zh"]),
        unit=say("bits (fewer is better)") if measure["unit"] == "bits" else say("% right"),
        layers=measure["size"][0],
        width=measure["size"][1],
        near=measure["at"][0],
        far=measure["at"][1],
        shown=shown,
        source=measure["source"],
    )


def use(name: str, answers: Answers, *, changes: bool = True) -> str:
    """At most three lines of Python that make it, and the positions that it reads; of a trained model, where only its
    configuration has what it needs, the command that reads that: of one that nothing `changes`, what it has."""
    model, wanted = answers.reading, answers.wanted or answers.trained
    if model and model.call and not changes:
        return _named(model.call) + (f"\nat = {_sized(model.at)}" if model.at else "")
    if name in METHOD and answers.start == "trained" and answers.of and answers.told["length"] == "longer":
        of_tokens = model.methods is not None if model else answers.entry.name != "rope" and answers.entry.axes == 1
        file = shlex.quote(model.file) if model else "config.json"
        if model and not changes:
            return f"posenc inspect {file}"
        if of_tokens or answers.scaling:
            return f"posenc inspect {file} --extend-to {wanted} --method {METHOD[name]}"
    values: dict[str, Any] = {"factor": f"{max(answers.factor, 1.0):g}", "trained": answers.trained, "wanted": wanted}
    values |= {"side": f"{max(answers.factor, 1.0) ** 0.5:.4g}", "rows": max(round(answers.trained**0.5), 1)}
    values |= {"axes": 2 if answers.domain == "image" else 3, "causal": _causal(BY_NAME[name], answers)}
    values |= {"window": max(answers.trained // 2, 1), "group": max(2 * round(answers.factor), 2)}
    written = table()["use"].get(name) or _plain_use(BY_NAME[name], answers)
    if model and answers.start == "trained" and (model.axes or (model.layer and name not in AXES)):
        one = len(model.axes.get("sizes", ())) == 1
        written = table()["of_axes" if one or name in AXES else "of_a_model"].get(name, written)
        values |= _of_axes(model.axes, answers.trained) | {"layer": model.layer, "file": json.dumps(model.file)}
    if name == "riflex" and (why := _repeats_later(values)):
        return f"# nothing to change: {why}"
    return Template(written).substitute(values).strip()


def _named(call: str) -> str:
    """The call of a model, after its imports, whose result is called encoding."""
    imports, line, expression = call.rpartition("\n")
    return f"{imports}{line}encoding = {expression}"


def _of_axes(axes: Mapping[str, Any], trained: int) -> dict[str, Any]:
    """The words of a model with a spectrum for each coordinate: the first counts frames, or images; the last two rows and
    columns, which `side` stretches, or the two in the middle where a fourth counts words."""
    if not axes:
        return {}
    sizes, bases, around = axes["sizes"], axes["bases"], _named(axes["around"])
    last = len(sizes) - (len(sizes) == 4)
    spectra = [f"posenc.frequencies.rotary({size}, {base:.10g})" for size, base in zip(sizes, bases, strict=True)]
    stretched = ", ".join("side" if axis in (last - 2, last - 1) else one for axis, one in enumerate(spectra))
    return {
        "frequencies": axes["frequencies"],
        "side_of": spectra[last - 1],
        "raised": f"posenc.frequencies.rotary({sizes[0]}, {16 * bases[0]:.10g})",
        "longer": around.replace("FREQUENCIES", "longer"),
        "wider": around.replace("FREQUENCIES", f"posenc.frequencies.of_axes({stretched})"),
        "channels": sizes[0],
        "base": bases[0],
        "repeats": axes.get("repeats", trained),
    }


def _repeats_later(values: Mapping[str, Any]) -> str:
    """Why RIFLEx has nothing to slow down: the pair turns once in the wanted length already; "" where it has."""
    trained = frequencies.rotary(values.get("channels", 64), values.get("base", 256.0))
    try:
        frequencies.riflex(trained, values["wanted"], repeats=values.get("repeats", values["trained"]))
    except ValueError as error:
        return str(error)
    return ""


def _causal(entry: Entry, answers: Answers) -> bool:
    """Whether tokens see earlier ones only: some encodings are defined for these alone."""
    return answers.causal or "causal_only" in facts(entry)["traits"]


def _plain_use(entry: Entry, answers: Answers) -> str:
    if entry.kind == "positions":
        return f"# posenc list {entry.name}"
    both_ways = ", bidirectional=True" if "bidirectional" in facts(entry)["options"] and not answers.causal else ""
    layers, of_layer = (", n_layers=12", ".at_layer(0)") if entry.kind == "preset" else ("", "")
    positions = _sized(" ".join(entry.positions.split()))
    return (
        f'encoding = posenc.create("{entry.name}", d_model=512, n_heads=8{layers}{both_ways})\n'
        f"at = {positions}\n"
        f"y = posenc.Attention(512, 8, encoding{of_layer})(x, at, causal={_causal(entry, answers)})"
    )


def _sized(positions: str) -> str:
    """Positions of an example's sizes; the name of an argument stays."""
    named = re.compile(rf"\b({'|'.join(EXAMPLE)})\b(?!=)")
    return named.sub(lambda match: str(EXAMPLE[match[0]]), positions)


def cost(name: str) -> Words | None:
    """Its measured time relative to no encoding, if it was measured."""
    measured = costs.measured().get(name)
    known = [(words, measured.median(what)) for what, words in costs.MEASURES.items()] if measured else []
    parts = [say("{what} {ratio:.2f} ×", what=words, ratio=ratio) for words, ratio in known if ratio is not None]
    return say("time relative to NoPE: {times}", times=joined(parts, "; ", "；")) if parts else None


def as_json(answers: Answers, advice: Advice) -> dict[str, Any]:
    given = {name: value for name, value in asdict(answers).items() if name != "read"}
    return {"answers": given | {"model": answers.told["model"]}, "advice": advice.as_json()}
