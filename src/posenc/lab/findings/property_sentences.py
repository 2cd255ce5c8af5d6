"""Sentences about the exactly measured properties: word order, and decoding with a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.findings.wording import listed
from posenc.lab.say import say
from posenc.lab.trial.fp64_properties import SAME
from posenc.support.languages import Words

Json = Mapping[str, Any]


def sentences(findings: Json) -> Iterator[Words]:
    if findings["properties"] is None:
        return
    rows = [{"name": name, **row} for name, row in findings["properties"]["rows"].items() if "failed" not in row]
    yield from _order(findings["properties"]["order_without"], rows)
    yield from _decode(rows)


def small(value: float) -> str:
    """Two digits, and rounding errors as a power of ten."""
    return "0" if value == 0 else f"{value:.2f}" if value >= 0.005 else f"{value:.0e}"


def _order(without: Json, rows: list[dict[str, Any]]) -> Iterator[Words]:
    both, causal = small(without["bidirectional"]), small(without["causal"])
    yield say(
        "Without an encoding, bidirectional attention cannot tell 我爱你 from 你爱我 (difference {both}); with "
        "a causal mask it can ({causal}).",
        both=both,
        causal=causal,
    )
    blind = [
        row
        for row in rows
        if (exchanged := row["order"]["bidirectional"]) is not None and exchanged <= SAME < row["reordered"]
    ]
    if blind:
        names = listed(blind, lambda row: Words(small(row["reordered"])))
        yield say(
            "The sentence pairs are reversals. In bidirectional attention, a bias of |i−j| does not change "
            "under reversal, so these encodings miss them. They do see other re-orderings (difference): "
            "{names}.",
            names=names,
        )


def _decode(rows: list[dict[str, Any]]) -> Iterator[Words]:
    if not rows:
        return
    wrong, worst = [row for row in rows if row["decode"] > SAME], small(max(row["decode"] for row in rows))
    if wrong:
        names = listed(wrong, lambda row: Words(small(row["decode"])))
        yield say("Decoding with a cache differs from computing all tokens at once for: {names}.", names=names)
    else:
        yield say(
            "For every encoding, decoding with a cache equals computing all tokens at once (largest difference {worst}).",
            worst=worst,
        )
