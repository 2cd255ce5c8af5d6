"""Conventions of the field with a name: which models rotate how."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posenc.checking.result import Difference
from posenc.checking.say import say
from posenc.support.languages import Words, clauses


@dataclass(frozen=True)
class Convention:
    """A rotary convention: layout, base, share of the channels that turn, and the models that have it."""

    layout: str
    base: float
    share: float
    models: str


NEAR = 2.5  # times as large, or as small
UNITS = {
    "linear, factor 57.3": say("every frequency is divided by 180/π: angles are taken for degrees"),
    "linear, factor 6.283": say("every frequency is divided by 2π: angles are taken for turns"),
}
ROTARY = (
    Convention("half", 10_000, 1.0, "Llama 1 and 2"),
    Convention("interleaved", 10_000, 1.0, "RoFormer, and Llama as first published"),
    Convention("half", 500_000, 1.0, "Llama 3"),
    Convention("interleaved", 500_000, 1.0, "Llama 3 as first published"),
    Convention("half", 1_000_000, 1.0, "Qwen 2.5, Mixtral, Mistral from 0.2 on"),
    Convention("half", 5_000_000, 1.0, "Yi"),
    Convention("half", 150_000, 1.0, "gpt-oss"),
    Convention("half", 10_000, 0.25, "GPT-NeoX, Pythia, StableLM"),
    Convention("half", 10_000, 0.5, "Phi-1, Persimmon"),
    Convention("half", 10_000, 0.4, "Phi-2"),
    Convention("interleaved", 10_000, 0.25, "GPT-J"),
    Convention("interleaved", 10_000, 0.5, "GLM-4, ChatGLM2"),
)


def compared(facts: Mapping[str, Any]) -> tuple[Convention | None, tuple[Difference, ...]]:
    """The convention that differs least, and how: nothing for a convention and for a known scaling of its frequencies.

    No convention where the base is none of theirs, near none, and no usual slip makes it of one.
    """
    one, found = min(((one, _differences(one, facts)) for one in ROTARY), key=lambda found: _far(found[0], found[1], facts))
    foreign = any(difference.fact == "base" for difference in found) and not _near(float(facts["base"]), one, _share(facts))
    return None if foreign else one, found


def _share(facts: Mapping[str, Any]) -> float:
    return float(facts["rotary_dim"] / facts["d_head"])


def _near(base: float, one: Convention, share: float) -> bool:
    return abs(math.log(base / one.base)) < math.log(NEAR) or _slip(base, one, share) is not None


def _far(one: Convention, differences: tuple[Difference, ...], facts: Mapping[str, Any]) -> tuple[int, float]:
    base = float(facts.get("base", 10_000))
    slip = _slip(base, one, _share(facts))
    return len(differences), 0.0 if slip else abs(math.log(one.base) - math.log(base))


def _differences(one: Convention, facts: Mapping[str, Any]) -> tuple[Difference, ...]:
    found = []
    turning, d_head, base = facts["rotary_dim"], facts["d_head"], facts.get("base")
    scaling = str(facts.get("scaling", ""))
    if facts.get("layout") != one.layout:
        found.append(
            Difference("layout", say("channels are paired otherwise than in its layout, {theirs}", theirs=one.layout))
        )
    if abs(turning / d_head - one.share) >= 0.02:
        found.append(Difference("rotary_dim", say("{turning} of {d_head} channels turn", turning=turning, d_head=d_head)))
    if facts.get("trailing"):
        found.append(Difference("trailing", say("the last channels turn, not the first")))
    if facts.get("proportional"):
        found.append(Difference("proportional", say("pairs span the head, and only the first of them turn")))
    if facts["sign"] != "positive":
        found.append(Difference("sign", say("it turns the other way: the sine has the other sign")))
    if facts["magnitude"] != 1.0 and not scaling.startswith("yarn"):
        found.append(Difference("magnitude", say("lengths change: the magnitude is {size}", size=facts["magnitude"])))
    if facts.get("reversed"):
        found.append(
            Difference("reversed", say("the frequencies stand in the reverse order: the first pair is the slowest"))
        )
    elif scaling.startswith("unknown") or (base is None and "frequencies" not in facts):
        found.append(Difference("frequencies", say("the frequencies follow no known formula")))
    elif base is not None and base != one.base:
        found.append(Difference("base", _of_base(float(base), one, turning / d_head)))
    elif scaling == "linear, factor 0.5":
        found.append(Difference("scaling", say("every frequency is doubled, as where a rotation is applied twice")))
    elif scaling in UNITS:
        found.append(Difference("scaling", UNITS[scaling]))
    elif scaling.startswith("linear, factor 0."):
        found.append(
            Difference("scaling", say("every frequency is multiplied by one factor above 1 ({scaling})", scaling=scaling))
        )
    return tuple(found)


def _of_base(base: float, one: Convention, share: float) -> Words:
    if not _near(base, one, share):
        return say("no known model has base {base:g}", base=base)
    said, slip = say("base {base:g} instead of {theirs:g}", base=base, theirs=one.base), _slip(base, one, share)
    return clauses(said, slip) if slip else said


def _slip(base: float, one: Convention, share: float) -> Words | None:
    """The usual slip in the exponent that makes this base of the convention's.

    A round number is a base that somebody chose: 1000 is no slip of 1 000 000. The slips of 10 000 are round themselves.
    """
    if one.base != 10_000 and float(f"{base:.0e}") == base:
        return None
    slips = {
        2.0: say("the same as an exponent twice as large, divided by d/2 for d"),
        0.5: say("the same as half of the exponent, i/d for 2i/d"),
        share: say("the same as an exponent divided by the head for the channels that turn"),
    }
    said = (words for factor, words in slips.items() if factor != 1 and _is_power(base, one.base, factor))
    return next(said, None)


def _is_power(base: float, other: float, factor: float) -> bool:
    return math.isclose(math.log(base), factor * math.log(other), rel_tol=1e-3)
