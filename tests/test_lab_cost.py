"""Timing by turns: pairwise ratios, and a planted slow contender."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import groupby
from types import SimpleNamespace

import pytest
import torch

from posenc.lab.experiment import Size, Training, Trial
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial import cost

BYTES = bytes(range(256)) * 8
TEXT = Corpus("bytes", "", (BYTES,), (BYTES,))


OWN = """
from posenc import PositionalEncoding

class Mine(PositionalEncoding):
    pass
"""


def trial(name: str, source: str | None = None) -> Trial:
    task = LanguageModel(lengths=(64, 128, 256, 512), held_out=96, cut_up="longest")
    training = Training(steps=1, rows=8, learning_rate=1e-2)
    return Trial(task=task, encoding=name, source=source, seed=0, size=Size(d_model=64), training=training)


def test_an_encoding_that_breaks_is_left_out_and_named() -> None:
    sizes = cost.Sizes(d_model=32, n_heads=4, prompt=8, tokens=1)
    broken = OWN.replace("pass", "def prepare(self, at, dtype=None):\n        raise RuntimeError('planted')")
    found = cost.cost([trial("rope"), trial("mine.py:Mine", broken)], TEXT, 0.0, lambda share: None, sizes)
    assert found["ratios"].keys() == {"rope"}
    assert found["failures"] == {"mine.py:Mine": "RuntimeError: planted"}


def test_ratios_are_taken_within_a_round() -> None:
    base = [1.0, 10.0, 1.0, 10.0, 1.0]  # the weather changes from round to round
    times = [2.0, 20.0, 2.0, 20.0, 3.0]
    assert cost.spread(times, base) == {"median": 2.0, "low": 2.0, "high": 2.0}


def test_contenders_take_turns_and_the_slow_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    now = 0.0

    def planted(trial: Trial, text: Corpus, sizes: cost.Sizes) -> dict[str, object]:
        def call(kind: str) -> None:
            nonlocal now
            turns.append(f"{trial.encoding} {kind}")
            weather = 1.0 + (len(turns) - 6) // 9  # every round slower than the one before
            now += weather * (3.0 if trial.encoding == "cope" else 1.0)

        return {kind: lambda kind=kind: call(kind) for kind in cost.KINDS}

    monkeypatch.setattr(cost, "_calls", planted)
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: now))
    threads = torch.get_num_threads()
    found = cost.cost([trial("nope"), trial("cope")], TEXT, 0.0, lambda share: None)
    assert found["rounds"] == cost.FEWEST
    one_round = Counter(
        {"nope prefill": 2, "nope decode": 2, "nope training": 2, "cope prefill": 1, "cope decode": 1, "cope training": 1}
    )
    del turns[:6]  # each encoding is called once, to see that it works
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
    trials = [trial("floater"), trial("transformer_xl"), trial("rope+randomized"), trial("mine.py:Mine", OWN)]
    found = cost.cost(trials, TEXT, 0.0, lambda share: None, sizes)
    assert found["failures"] == {}
    for one in trials:
        row = found["ratios"][one.encoding]
        assert row.keys() == {*cost.KINDS, "parameters", "table_bytes_per_token"}
        for ratio in (row[kind] for kind in cost.KINDS):
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
