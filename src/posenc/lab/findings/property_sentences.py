"""Sentences about the exactly measured properties: word order, and decoding with a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from posenc.lab.findings.wording import listed
from posenc.lab.trial.fp64_properties import SAME
from posenc.support.languages import Words

Json = Mapping[str, Any]


def sentences(found: Json) -> Iterator[Words]:
    if found["properties"] is None:
        return
    rows = [{"name": name, **row} for name, row in found["properties"]["rows"].items() if "failed" not in row]
    yield from _order(found["properties"]["order_without"], rows)
    yield from _decode(rows)


def small(value: float) -> str:
    """Two digits, and rounding errors as a power of ten."""
    return "0" if value == 0 else f"{value:.2f}" if value >= 0.005 else f"{value:.0e}"


def _order(without: Json, rows: list[dict[str, Any]]) -> Iterator[Words]:
    both, causal = small(without["bidirectional"]), small(without["causal"])
    yield Words(
        f"Without an encoding, bidirectional attention cannot tell 我爱你 from 你爱我 (difference {both}); "
        f"with a causal mask it can ({causal}).",
        f"没有位置编码时，双向注意力分不清“我爱你”和“你爱我”（差 {both}）；仅有因果掩码就已能分清（{causal}）。",
    )
    blind = [
        row
        for row in rows
        if (exchanged := row["order"]["bidirectional"]) is not None and exchanged <= SAME < row["reordered"]
    ]
    if blind:
        names = listed(blind, lambda row: Words(small(row["reordered"]), small(row["reordered"])))
        yield Words(
            "The sentence pairs are reversals. In bidirectional attention, a bias of |i−j| does not change under reversal, "
            f"so these encodings miss them. They do see other re-orderings (difference): {names.en}.",
            "这些句对恰好是整句倒序。双向注意力下，|i−j| 的偏置从两边看都一样，因此下列编码看不出倒序，"
            f"但能看出其他次序变化（括号内为差值）：{names.zh}。",
        )


def _decode(rows: list[dict[str, Any]]) -> Iterator[Words]:
    if not rows:
        return
    wrong, worst = [row for row in rows if row["decode"] > SAME], small(max(row["decode"] for row in rows))
    if wrong:
        names = listed(wrong, lambda row: Words(small(row["decode"]), small(row["decode"])))
        yield Words(
            f"Decoding with a cache differs from computing all tokens at once for: {names.en}.",
            f"用缓存逐词计算与一次算完不一致的有：{names.zh}。",
        )
    else:
        yield Words(
            f"For every encoding, decoding with a cache equals computing all tokens at once (largest difference {worst}).",
            f"对每一种编码，用缓存逐词计算都与一次算完相同（最大差 {worst}）。",
        )
