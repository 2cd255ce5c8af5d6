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


def differ(findings: Json) -> Words:
    """The models differ by the encoding only; or also by what is listed."""
    told = []
    for task in findings["tasks"]:
        if exceptions := list(_exceptions(task)):
            rows = joined(exceptions, "; ", "；")
            told.append(
                say("{task}: {exceptions}", task=task_title(task), exceptions=rows) if len(findings["tasks"]) > 1 else rows
            )
    if not told:
        return say("The models differ by the encoding only")
    return say("The models differ by the encoding, and by what belongs to it ({told})", told=joined(told, "; ", "；"))


def _exceptions(task: Json) -> Iterator[Words]:
    rates = {arm["name"]: arm["learning_rate"] for arm in task["arms"] if arm["learning_rate"] is not None}
    usual = max(Counter(rates.values()).items(), key=lambda entry: entry[1])[0] if rates else None
    for rate in sorted({rate for rate in rates.values() if rate != usual}):
        names = joined((title(encoding) for encoding, of in rates.items() if of == rate), ", ", "、")
        yield say("learning rate {rate:g} of {names}, {usual:g} of the others", rate=rate, names=names, usual=usual)
    for arm in task["arms"]:
        settings = {**task["settings"].get(arm["name"], {}), **arm["options"]}
        if settings:
            settings_listed = joined((Words(f"{setting} {value:g}") for setting, value in settings.items()), ", ", "，")
            yield say("{arm} with {settings}", arm=name(arm), settings=settings_listed)
        if arm["name"].endswith(DROPPED):
            yield say("{arm} without positions in the last eighth of the steps", arm=name(arm))
