"""What a small budget can tell about pairs of encodings, on a ladder and on scores whose answer is known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab_results import Asked, write
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.budget_limits import (
    DIGEST,
    NOTHING_TO_COMPARE,
    _verdicts,
    budget_limits,
    scale_for,
    sentences,
    shipped,
)

ROOT = Path(__file__).parent.parent


def rung(tokens: int, width: int = 64) -> dict[str, Any]:
    return {"name": f"{tokens}-{width}", "tokens": tokens, "size": {"d_model": width, "n_layers": 2}}


def arm(*bits: float, spread: float = 0.0) -> list[dict[str, Any]]:
    """An encoding's mean bits at every rung; `spread` tells how its seeds differ."""
    seeds = [{str(n): one + spread * (n - 1) for n in range(3)} for one in bits]
    return [{"seeds": {"64": each, "512": each}} for each in seeds]


def ladder() -> dict[str, Any]:
    """nope is worst everywhere; rope and alibi change places with more training; t5's seeds differ by up to a bit."""
    return {
        "task": {"name": "language_model", "length": 64, "lengths": [64, 512]},
        "rungs": [rung(100_000), rung(400_000), rung(400_000, 128)],
        "arms": {
            "nope": arm(4.0, 3.8, 3.7, spread=0.001),
            "rope": arm(3.0, 2.0, 1.9),
            "alibi": arm(2.5, 2.3, 2.2, spread=0.002),
            "t5": arm(2.7, 2.2, 2.1, spread=0.5),
        },
    }


def task(tokens: int, *names: str) -> dict[str, Any]:
    arms = [{"name": name, "learnt": True, "cells": {n: {"seeds": {}} for n in ("64", "512")}} for name in names]
    return {"name": "language_model", "length": 64, "lengths": [64, 512], "trained_tokens": tokens, "arms": arms}


def test_pairs_by_hand() -> None:
    """The standard deviations of these differences are at most .003, and the differences at least .3."""
    found = budget_limits(task(150_000, "nope", "rope", "alibi"), 2, ladder())
    assert (found["scale"], found["tokens"], found["seeds"]) == (100_000, 150_000, 2)
    home, far = found["lengths"]
    assert (home["times"], far["times"]) == (1, 8)
    assert [(a, b) for a, b, _ in home["separates"]] == [("alibi", "nope"), ("rope", "nope")]
    assert home["separates"][0][2] == pytest.approx(1.5)
    assert home["changes"] == [("alibi", "rope")]
    assert home["unsettled"] == []
    later = budget_limits(task(400_000, "rope", "alibi"), 2, ladder())
    assert [(a, b) for a, b, _ in later["lengths"][0]["separates"]] == [("rope", "alibi")]


def test_encodings_that_the_ladder_did_not_train_are_named() -> None:
    """Beside a pair that it did train, and where no pair is left; only with fewer than two that learnt there is no pair."""
    said = sentences(budget_limits(task(150_000, "nope", "rope", "shaw", "mine.py:Mine"), 2, ladder()))
    assert "generated prose" in said[0].en
    assert "trained at length 64" in said[0].en
    assert said[1].en.startswith("At the trained length, it can separate RoPE from NoPE")
    assert said[-1].en == "The ladder did not train Shaw, Mine: whether this budget can rank them is not known."
    assert said[-1].zh.startswith("阶梯实验没有训练 Shaw、Mine：")
    alone = sentences(budget_limits(task(150_000, "rope", "shaw"), 2, ladder()))
    assert [one.en.partition(":")[0] for one in alone[1:]] == ["The ladder did not train Shaw"]
    assert sentences(budget_limits(task(150_000, "rope"), 2, ladder())) == [NOTHING_TO_COMPARE]
    assert read_experiment("ladder").text.startswith("prose")


def test_seeds_that_differ_settle_nothing() -> None:
    """T5 differs from NoPE by 1.3 bits with a standard deviation of .5. One more difference has the same sign with a
    chance of .92 (t = 1.3 / (.5 · √(4/3)), 2 degrees of freedom), two have with .85. A hundred seeds show the difference.
    """
    few, many = (budget_limits(task(100_000, "nope", "t5"), seeds, ladder())["lengths"][0] for seeds in (2, 100))
    assert few["unsettled"] == [("nope", "t5")]
    assert [(a, b) for a, b, _ in many["separates"]] == [("t5", "nope")]
    one = budget_limits(task(100_000, "nope", "rope"), 1, ladder())["lengths"][0]
    assert one["separates"] == one["changes"] == []


def test_seeds_that_all_have_one_difference_separate() -> None:
    """RoPE is better than NoPE by exactly one bit in every seed; two seeds show it, and so do five."""
    one = {"rope": {str(n): 1.0 for n in range(5)}, "nope": {str(n): 2.0 for n in range(5)}}
    for seeds in (2, 5):
        assert _verdicts(1.0, ["rope", "nope"], [one], seeds).separates == [("rope", "nope", 1.0)]


def test_the_scale_that_speaks_for_a_comparison() -> None:
    """The most tokens among those with at most twice as many, at the smaller width; none above that."""
    assert [scale_for(task(tokens), ladder()) for tokens in (49_999, 50_000, 199_999, 200_000, 10**9)] == [None, 0, 0, 1, 1]


def test_without_a_ladder_the_seeds_alone_speak(tmp_path: Path) -> None:
    def value(asked: Asked) -> float:
        return {"rope": 2.0, "alibi": 2.0001, "nope": 3.0}[asked.encoding] + 0.01 * asked.seed * (asked.encoding != "rope")

    write(
        tmp_path, tasks=["language_model"], encodings=("rope", "alibi", "nope"), value=value, items=3, looks=False, after=()
    )
    main = findings(tmp_path)["tasks"][0]
    found = budget_limits(main, 3, None)
    home = found["lengths"][0]
    assert [{a, b} for a, b, _ in home["separates"]] == [{"rope", "nope"}, {"alibi", "nope"}]
    assert [set(pair) for pair in home["unsettled"]] == [{"rope", "alibi"}]
    told = sentences(found)
    assert "posenc ships no results of its ladder" in told[0].en
    assert told[1].en == ("At the trained length, it can separate RoPE from NoPE (1.01 bits), ALiBi from NoPE (1.00 bits).")
    assert told[2].zh.startswith("在训练长度上，它排不出先后的有：RoPE 与 ALiBi；")
    assert "even the smallest scale" in sentences(budget_limits(main, 3, ladder() | {"rungs": [rung(10**9)] * 3}))[0].en


def test_the_shipped_digest_is_that_of_the_shipped_ladder() -> None:
    report = ROOT / "results" / "ladder" / "report" / DIGEST
    assert (shipped() is not None) == report.exists()
    if report.exists():
        assert (ROOT / "src/posenc/lab/findings" / DIGEST).read_bytes() == report.read_bytes()
