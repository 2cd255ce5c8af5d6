"""Timing by turns: pairwise ratios, and a planted slow contender."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import groupby
from types import SimpleNamespace

import pytest
import torch

from posenc.lab.experiment.arm import Arm
from posenc.lab.experiment.corpus import Corpus
from posenc.lab.experiment.recipe import Recipe
from posenc.lab.trial import cost

BYTES = bytes(range(256)) * 8
TEXT = Corpus("bytes", "", (BYTES,), (BYTES,))


OWN = """
from posenc import PositionalEncoding

class Mine(PositionalEncoding):
    pass
"""


def test_ratios_are_taken_within_a_round() -> None:
    base = [1.0, 10.0, 1.0, 10.0, 1.0]  # the weather changes from round to round
    times = [2.0, 20.0, 2.0, 20.0, 3.0]
    assert cost.spread(times, base) == {"median": 2.0, "low": 2.0, "high": 2.0}


def test_contenders_take_turns_and_the_slow_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    now = 0.0

    def planted(arm: Arm, recipe: Recipe, text: Corpus, sizes: cost.Sizes) -> dict[str, object]:
        def call(kind: str) -> None:
            nonlocal now
            turns.append(f"{arm} {kind}")
            weather = 1.0 + len(turns) // 9  # every round slower than the one before
            now += weather * (3.0 if str(arm) == "cope" else 1.0)

        return {kind: lambda kind=kind: call(kind) for kind in cost.KINDS}

    monkeypatch.setattr(cost, "_calls", planted)
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: now))
    arms = [Arm("nope"), Arm("cope")]
    threads = torch.get_num_threads()
    found = cost.cost(arms, Recipe(), TEXT, 0.0, lambda share: None)
    assert found["rounds"] == cost.FEWEST
    one_round = Counter({"nope prefill": 2, "nope decode": 2, "nope training": 2, "cope prefill": 1, "cope decode": 1,
                         "cope training": 1})  # fmt: skip
    for start in range(0, len(turns), 9):
        assert Counter(turns[start : start + 9]) == one_round
    assert len({tuple(turns[start : start + 9]) for start in range(0, len(turns), 9)}) > 1  # in changing order
    assert max(len(list(run)) for _, run in groupby(turns)) <= 4
    assert found["ratios"]["cope"]["prefill"]["median"] == pytest.approx(3, rel=0.1)
    assert found["ratios"]["nope"]["decode"]["median"] == pytest.approx(1, rel=0.1)
    assert torch.get_num_threads() == threads
    assert gc.isenabled()


def test_every_kind_of_call_runs() -> None:
    sizes = cost.Sizes(d_model=32, n_heads=4, prompt=8, tokens=1)
    arms = [Arm("floater"), Arm("transformer_xl"), Arm("rope", randomized=True), Arm("mine.py:Mine", source=OWN)]
    found = cost.cost(arms, Recipe(), TEXT, 0.0, lambda share: None, sizes)
    for arm in arms:
        assert found["ratios"][str(arm)].keys() == set(cost.KINDS)
        for ratio in found["ratios"][str(arm)].values():
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
