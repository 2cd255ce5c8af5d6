"""Checks of published claims about speed."""

from __future__ import annotations

from collections.abc import Sequence

from judging.deciding import Ours, Score, by_ranges, worst_first
from judging.our_scores import Found, Judge, Untested, listed, reachable
from judging.say import say
from posenc.lab.findings.titles import title
from posenc.support.languages import Words

COST = say("a sweep with this encoding, on one machine; it measures the cost at its end")


def slower(*groups: Sequence[str]) -> Judge:
    """Time of a training step relative to NoPE, the slowest group first. Overlapping quartiles leave an order undecided."""

    def judge(findings: Found) -> Ours:
        if findings["cost"] is None:
            raise Untested(say("cost was not measured"), COST)
        rows, device = findings["cost"]["rows"], findings["cost"]["device"]

        def look_up(name: str) -> Score:
            if name not in rows:
                raise Untested(say("{name}: not measured", name=title(name)), COST)
            return Score(rows[name]["training"]["median"], {})

        scores, left, without = reachable(groups, look_up)
        told = say("measured on {device}", device=Words(device, device.replace(", one thread", " 单线程")))
        words = listed(scores, unit=say("× the time of NoPE"))
        low, middle, high = ({name: rows[name]["training"][of] for name in scores} for of in ("low", "median", "high"))
        return by_ranges(low, middle, high, worst_first(left), words, told, without)

    return judge
