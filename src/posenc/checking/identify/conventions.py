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
    "linear, factor 57.2958": say("every frequency is divided by 180/π: angles are taken for degrees"),
    "linear, factor 6.28319": say("every frequency is divided by 2π: angles are taken for turns"),
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


def compared(
    facts: Mapping[str, Any], of_scaling: tuple[Difference, ...]
) -> tuple[Convention | None, tuple[Difference, ...]]:
    """The convention that differs least, and how: nothing for a convention and for a known scaling of its frequencies.

    No convention where the base is none of theirs, near none, and no usual slip makes it of one.
    of_scaling   how the scaling differs from known ones
    """
    found = ((c, _differences(c, facts, of_scaling)) for c in ROTARY)
    nearest, differences = min(found, key=lambda p: _far(p[0], p[1], facts))
    foreign = any(d.fact == "base" for d in differences) and not _near(float(facts["base"]), nearest, _share(facts))
    return None if foreign else nearest, differences


def _share(facts: Mapping[str, Any]) -> float:
    return float(facts["rotary_dim"] / facts["d_head"])


def _near(base: float, convention: Convention, share: float) -> bool:
    return abs(math.log(base / convention.base)) < math.log(NEAR) or _slip(base, convention, share) is not None


def _far(convention: Convention, differences: tuple[Difference, ...], facts: Mapping[str, Any]) -> tuple[int, float]:
    base = float(facts.get("base", 10_000))
    slip = _slip(base, convention, _share(facts))
    return len(differences), 0.0 if slip else abs(math.log(convention.base) - math.log(base))


def _differences(known: Convention, facts: Mapping[str, Any], of_scaling: tuple[Difference, ...]) -> tuple[Difference, ...]:
    differences = []
    turning, d_head, base = facts["rotary_dim"], facts["d_head"], facts.get("base")
    scaling = str(facts.get("scaling", ""))
    if facts.get("layout") != known.layout:
        differences.append(
            Difference("layout", say("channels are paired otherwise than in its layout, {theirs}", theirs=known.layout))
        )
    if abs(turning / d_head - known.share) >= 0.02:
        differences.append(
            Difference("rotary_dim", say("{turning} of {d_head} channels turn", turning=turning, d_head=d_head))
        )
    if facts.get("trailing"):
        differences.append(Difference("trailing", say("the last channels turn, not the first")))
    if facts.get("proportional"):
        differences.append(Difference("proportional", say("pairs span the head, and only the first of them turn")))
    if facts["sign"] != "positive":
        differences.append(Difference("sign", say("it turns the other way: the sine has the other sign")))
    if facts.get("reversed"):
        differences.append(
            Difference("reversed", say("the frequencies stand in the reverse order: the first pair is the slowest"))
        )
    elif base is None and "frequencies" not in facts:
        differences.append(Difference("frequencies", say("the frequencies follow no known formula")))
    elif base is not None and base != known.base and not scaling.endswith(f"from base {known.base:g}"):
        own = next((d for d in of_scaling if d.fact == "base"), None)
        differences.append(own or Difference("base", _of_base(float(base), known, turning / d_head)))
    elif scaling == "linear, factor 0.5":
        differences.append(Difference("scaling", say("every frequency is doubled, as where a rotation is applied twice")))
    elif scaling in UNITS:
        differences.append(Difference("scaling", UNITS[scaling]))
    elif scaling.startswith("linear, factor 0."):
        differences.append(
            Difference("scaling", say("every frequency is multiplied by one factor above 1 ({scaling})", scaling=scaling))
        )
    return (*differences, *(d for d in of_scaling if d.fact != "base"))


def _of_base(base: float, known: Convention, share: float) -> Words:
    if not _near(base, known, share):
        return say("no known model has base {base:g}", base=base)
    message, slip = (say("base {base:g} instead of {theirs:g}", base=base, theirs=known.base), _slip(base, known, share))
    return clauses(message, slip) if slip else message


def _slip(base: float, convention: Convention, share: float) -> Words | None:
    """The usual slip in the exponent that makes this base of the convention's.

    A round number is a base that somebody chose: 1000 is no slip of 1 000 000. The slips of 10 000 are round themselves.
    """
    if convention.base != 10_000 and float(f"{base:.0e}") == base:
        return None
    slips = {
        2.0: say("the same as an exponent twice as large, divided by d/2 for d"),
        0.5: say("the same as half of the exponent, i/d for 2i/d"),
        share: say("the same as an exponent divided by the head for the channels that turn"),
    }
    messages = (words for factor, words in slips.items() if factor != 1 and _is_power(base, convention.base, factor))
    return next(messages, None)


def _is_power(base: float, other: float, factor: float) -> bool:
    return math.isclose(math.log(base), factor * math.log(other), rel_tol=1e-3)
