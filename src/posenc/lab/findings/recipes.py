"""What of the models differs besides the encoding: a learning rate of its own, settings of the encoding, its training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.experiment.arm import DROPPED
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import name, task_title
from posenc.lab.say import say
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]


def differ(found: Json) -> Words:
    """The models differ by the encoding only; or also by what is listed."""
    told = []
    for task in found["tasks"]:
        if exceptions := list(_exceptions(task)):
            said = joined(exceptions, "; ", "；")
            told.append(say("{task}: {said}", task=task_title(task), said=said) if len(found["tasks"]) > 1 else said)
    if not told:
        return say("The models differ by the encoding only")
    return say("The models differ by the encoding, and by what belongs to it ({told})", told=joined(told, "; ", "；"))


def _exceptions(task: Json) -> Iterator[Words]:
    rates = {arm["name"]: arm["learning_rate"] for arm in task["arms"] if arm["learning_rate"] is not None}
    usual = max(Counter(rates.values()).items(), key=lambda entry: entry[1])[0] if rates else None
    for rate in sorted({rate for rate in rates.values() if rate != usual}):
        names = joined((title(one) for one, of in rates.items() if of == rate), ", ", "、")
        yield say("learning rate {rate:g} of {names}, {usual:g} of the others", rate=rate, names=names, usual=usual)
    for arm in task["arms"]:
        given = {**task["settings"].get(arm["name"], {}), **arm["options"]}
        if given:
            said = joined((Words(f"{setting} {value:g}") for setting, value in given.items()), ", ", "，")
            yield say("{arm} with {said}", arm=name(arm), said=said)
        if arm["name"].endswith(DROPPED):
            yield say("{arm} without positions in the last eighth of the steps", arm=name(arm))
