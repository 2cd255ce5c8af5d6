"""A short list of entries for a few answers, with reasons: measured figures of ours, and cited ones, marked which.

    unmet(entry, answers)    why an entry does not fit; nothing if it does
    recommend(answers)       the entries that fit, the best supported first

Requirements are read from the entries themselves, so that an entry that is added takes part. An entry without evidence for
the length that is wanted is not proposed, and neither is one without any reason.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from posenc.catalogue.built import facts
from posenc.catalogue.choose import costs
from posenc.catalogue.choose.cited import CITED
from posenc.catalogue.choose.quality import Quality, quality
from posenc.catalogue.entry import Domain, Entry, Start
from posenc.catalogue.lookup import ENTRIES
from posenc.catalogue.say import say
from posenc.support.languages import Words, joined

Kernel = Literal["plain", "any"]
MOST = 5  # entries of a short list
AT_LEAST = 2.0  # multiple of the trained length that a measured encoding must reach where more is wanted
ALIKE = 0.1  # bits: what is nearer to the best is ranked by its cost


@dataclass(frozen=True)
class Answers:
    """The answers to the questions: what the encoding is for.

    domain      text, image, audio or graph
    causal      tokens see earlier ones only
    trained     tokens of a training example
    wanted      tokens of the longest example in use
    start       scratch: the model is trained with it; trained: it replaces the RoPE, or the grid, of a trained model
    kernel      plain: the attention kernel takes queries, keys, values and a causal mask, no bias; any: it takes more
    parameters  whether it may add learned parameters

    Raises ValueError, naming the answer, for one that there is not.
    """

    domain: Domain = "text"
    causal: bool = True
    trained: int = 2048
    wanted: int = 2048
    start: Start = "scratch"
    kernel: Kernel = "any"
    parameters: bool = True

    def __post_init__(self) -> None:
        for name, kinds in (("domain", Domain), ("start", Start), ("kernel", Kernel)):
            if getattr(self, name) not in get_args(kinds):
                raise ValueError(f"{name}: expected one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}")
        for name in ("trained", "wanted"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ValueError(f"{name}: expected a whole number from 1, got {getattr(self, name)!r}")

    @property
    def factor(self) -> float:
        """The length wanted over the trained one; 1 where it is not longer."""
        return max(self.wanted / self.trained, 1.0)


class Reason(NamedTuple):
    """kind: measured by us, or cited; source: the file of the measurement, or the paper."""

    kind: Literal["measured", "cited"]
    says: Words
    source: str


class Choice(NamedTuple):
    """An entry that fits. beware: what its evidence does not cover, and where it breaks."""

    name: str
    title: Words
    reasons: tuple[Reason, ...]
    beware: tuple[Words, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title.as_dict(),
            "reasons": [{"kind": one.kind, "says": one.says.as_dict(), "source": one.source} for one in self.reasons],
            "beware": [words.as_dict() for words in self.beware],
        }


RESULTS, COSTS = "results/standard", "src/posenc/catalogue/choose/costs.json"


def recommend(answers: Answers, most: int = MOST) -> list[Choice]:
    """The entries that fit, the best supported first; never empty."""
    fitting = [entry for entry in ENTRIES if not unmet(entry, answers)]
    return [_choice(entry, answers) for entry in sorted(fitting, key=lambda entry: _rank(entry, answers))[:most]]


def unmet(entry: Entry, answers: Answers) -> list[Words]:
    """The requirements that an entry does not meet."""
    found = []
    if answers.domain not in entry.used_for:
        found.append(say("it is not for {domain}", domain=answers.domain))
    if answers.start not in entry.starts_from:
        found.append(say("it does not start from {start}", start=answers.start))
    if entry.kind == "tempered":
        found.append(say("it tells no order by itself"))
    if "parameters" in entry.needs and not answers.parameters:
        found.append(say("it has parameters"))
    if "causal" in entry.needs and not answers.causal:
        found.append(say("it is causal only"))
    if entry.kind == "none" and not answers.causal and answers.domain != "graph":
        found.append(say("without a causal mask it tells no order"))
    shown = facts(entry)
    if answers.causal and entry.kind != "positions" and "local" not in shown["traits"]:
        found.append(say("a token reads later ones"))
    if answers.kernel == "plain" and set(shown["seams"]) - {"embed", "rotate", "bypass"}:
        found.append(say("it changes scores in a way that a plain kernel does not"))
    if answers.factor > 1 and answers.domain != "graph" and _reach(entry, answers) is None:
        found.append(say("nothing shows that it reaches further than its training"))
    if not _reasons(entry, answers):
        found.append(say("there is no figure for it"))
    return found


def _reach(entry: Entry, answers: Answers) -> float | None:
    """The largest factor of the trained length that evidence names; 1 where it names none. None: no evidence of lengths."""
    found = [cited.factor for cited in CITED.get(entry.name, ()) if cited.factor is not None]
    ours = _quality(entry, answers)
    if ours is not None and ours.factor >= min(answers.factor, AT_LEAST):
        found.append(ours.factor)
    return max(found, default=None)


def _quality(entry: Entry, answers: Answers) -> Quality | None:
    """What our text models measured, if the answers are of their kind."""
    if answers.domain not in ("text", "audio"):
        return None
    return quality(entry.name, causal=answers.causal, start=answers.start)


def _rank(entry: Entry, answers: Answers) -> tuple[float, ...]:
    """Evidence for the length first, then measured before cited, then quality, then the cost of training."""
    ours, reach, cost = _quality(entry, answers), _reach(entry, answers), costs.measured().get(entry.name)
    training = cost.median("training") if cost else None
    lasted = ours is not None and ours.factor == ours.tested
    enough = answers.factor <= 1 or lasted or (reach is not None and reach >= answers.factor)
    tested = ours is not None and (answers.factor <= 1 or ours.factor >= min(answers.factor, ours.tested))
    loss = ours.at(answers.factor) if ours is not None else math.inf
    return (
        not enough,
        not tested,
        math.floor(loss / ALIKE) if loss < math.inf else math.inf,
        0 if entry.name in CITED else 1,
        training if training is not None else math.inf,
    )


def _reasons(entry: Entry, answers: Answers) -> tuple[Reason, ...]:
    found = []
    if (ours := _quality(entry, answers)) is not None:
        found.append(Reason("measured", ours.says(answers.factor), RESULTS))
    if (cost := costs.measured().get(entry.name)) is not None:
        parts = [(words, cost.median(name)) for name, words in costs.MEASURES.items() if name != "prefill_long"]
        known = [(words, ratio) for words, ratio in parts if ratio is not None]
        if known:
            times = joined((say("{what} {ratio:.2f} ×", what=words, ratio=ratio) for words, ratio in known), ", ", "，")
            found.append(Reason("measured", say("time relative to NoPE: {times}", times=times), COSTS))
    found += [Reason("cited", cited.says, cited.source) for cited in CITED.get(entry.name, ())]
    return tuple(found)


def _choice(entry: Entry, answers: Answers) -> Choice:
    beware = []
    reach = _reach(entry, answers)
    if answers.factor > 1 and reach is not None and reach < answers.factor:
        beware.append(
            say(
                "the evidence ends at {reach:g} × the trained length; {factor:g} × are wanted",
                reach=reach,
                factor=answers.factor,
            )
            if reach > 1
            else say("the evidence names no length; {factor:g} × the trained one are wanted", factor=answers.factor)
        )
    beware.append(entry.page.breaks)
    return Choice(entry.name, entry.label, _reasons(entry, answers), tuple(beware))


def as_json(answers: Answers, choices: list[Choice]) -> dict[str, Any]:
    """The answers and the short list."""
    return {"answers": asdict(answers), "choices": [choice.as_json() for choice in choices]}
