"""Titles of encodings and of changes to RoPE, and the main task of a report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from posenc.catalogue import lookup
from posenc.lab.experiment.arm import ABACUS, DROPPED, RANDOMIZED, encoding_of
from posenc.lab.experiment.change import DROP, Change
from posenc.lab.say import say
from posenc.support.languages import Words, joined

CHANGES = {
    "": say("unchanged"),
    "interpolation": say("interpolation"),
    "ntk": Words("NTK"),
    "ntk_by_parts": say("NTK by parts"),
    "yarn": Words("YaRN"),
    "self_extend": Words("Self-Extend"),
    DROP: say("positions dropped"),
}
"""Ways to change RoPE's frequencies after training."""
STEPS = re.compile(r"(?P<steps>\d+) steps at (?P<length>\d+)(?:, rate (?P<rate>\S+))?")
"""Training after a change, as `Then.word` says it."""
SUFFIXES = {RANDOMIZED: say(" + random positions"), ABACUS: say(" + Abacus positions"), DROPPED: say(", dropped")}


def change_title(word: str) -> Words:
    """YaRN; YaRN (factor 2); YaRN (factor 4), 200 steps at 512."""
    return with_training(with_factor(CHANGES.get(word) or CHANGES[Change.parse(word).method], word), word)


def changed_title(word: str) -> Words:
    """RoPE + YaRN: the name of trained RoPE models with a change, beside those of encodings."""
    return say("RoPE + {change}", change=change_title(word))


def with_training(name: Words, word: str) -> Words:
    """The name of a change, with the training after it if there was one."""
    trained = training(word)
    return joined((name, trained), ", ", "，") if trained else name


def training(word: str) -> Words | None:
    """How a model was trained on after a change: 200 steps at 512, rate 0.001. None if it was not."""
    trained = Change.parse(word).trained if word else ""
    if (match := STEPS.fullmatch(trained)) is None:
        return Words(trained) if trained else None
    values = match.groupdict()
    if values["rate"] is None:
        return say("{steps} steps at {length}", steps=values["steps"], length=values["length"])
    return say("{steps} steps at {length}, rate {rate}", **values)


def with_factor(name: Words, word: str) -> Words:
    """The name of a change, with its factor if that is the same at every length."""
    factor = Change.parse(word).factor if word else None
    return name if factor is None else say("{name} (factor {factor:g})", name=name, factor=factor)


def title(arm: str) -> Words:
    """RoPE; Transformer-XL; Mine, of mine.py:Mine; RoPE + random positions; RoPE, dropped."""
    encoding = encoding_of(arm)
    entry = lookup.BY_NAME.get(encoding)
    name = encoding.rpartition(":")[2] if entry is None else entry.title
    return joined((Words(name), SUFFIXES.get(arm.removeprefix(encoding), Words(""))), "", "")


def main_task(findings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model; without one the first task that reads left to right, or the first."""
    tasks: Sequence[Mapping[str, Any]] = findings["tasks"]
    preferred = [
        *(task for task in tasks if task["name"] == "language_model"),
        *(task for task in tasks if task["causal"]),
        *tasks,
    ]
    return preferred[0]
