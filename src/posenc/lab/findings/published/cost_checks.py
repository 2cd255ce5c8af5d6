"""Checks of published claims about speed."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.lab.findings.published.deciding import Ours, Score, by_ranges, worst_first
from posenc.lab.findings.published.our_scores import (
    Found,
    Judge,
    Untested,
    listed,
    reachable,
)
from posenc.lab.findings.titles import title
from posenc.support.languages import Words

COST = Words(
    "a sweep with this encoding, on one machine; it measures the cost at its end",
    "在一台机器上运行含此编码的实验，结束时测量代价",
)


def slower(*groups: Sequence[str]) -> Judge:
    """Time of a training step relative to NoPE, the slowest group first. Overlapping quartiles leave an order undecided."""

    def judge(found: Found) -> Ours:
        if found["cost"] is None:
            raise Untested("cost was not measured", "没有测量代价", COST)
        rows, device = found["cost"]["rows"], found["cost"]["device"]

        def look_up(name: str) -> Score:
            if name not in rows:
                raise Untested(f"{title(name).en}: not measured", f"{title(name).zh}：未测量", COST)
            return Score(rows[name]["training"]["median"], {})

        scores, left, without = reachable(groups, look_up)
        told = Words(f"measured on {device}", f"在 {device.replace(', one thread', ' 单线程')} 上测量")
        words = listed(scores, unit=Words("× the time of NoPE", "（以 NoPE 的耗时为 1）"))
        low, middle, high = ({name: rows[name]["training"][of] for name in scores} for of in ("low", "median", "high"))
        return by_ranges(low, middle, high, worst_first(left), words, told, without)

    return judge
