"""Positions that depend on the tokens: the digits of addition, counted by a loop over the tokens."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from posenc.lab.experiment import Trial
from posenc.lab.experiment.arm import Arm
from posenc.lab.tasks.addition import Addition
from posenc.lab.tasks.task import IGNORE
from posenc.lab.trial.training import Run
from posenc.positions import Positions

TASK = Addition(length=2, lengths=(2, 3, 6), held_out=200)  # more rows than are scored at once
ARM = Arm.parse("learned+abacus")


def by_loop(rows: list[list[int]], start: int) -> list[list[int]]:
    found: list[list[int]] = []
    for row in rows:
        places = [0]
        for token in row:
            places.append((places[-1] or start) + 1 if token < 10 else 0)
        found.append(places[1:])
    return found


def trial(encoding: str = "learned+abacus", **changed: object) -> Trial:
    return Trial.model_validate({
        "task": TASK.model_dump(), "encoding": encoding, "seed": 0, "size": {"d_model": 16, "n_heads": 2, "n_layers": 1},
        "training": {"steps": 2, "rows": 4}, **changed,
    })  # fmt: skip


def test_digits_are_counted_from_a_random_start_in_training() -> None:
    tokens, random = TASK.scored(2).tokens[:3], torch.Generator().manual_seed(0)
    starts = set()
    for _ in range(40):
        places = ARM.training_positions(TASK, tokens, random).coords.tolist()
        starts.add(start := places[0][1] - 1)
        assert places == by_loop(tokens.tolist(), start)
    assert starts == set(range(5))  # sums have 3 digits in training and 7 at most


def test_the_table_has_the_positions_that_are_seen_in_training() -> None:
    assert Run(trial(), None).model.encoding(0).largest_position() == 7  # 0, and the digits of the longest sum
    at_six = trial(oracle=True)
    assert Run(at_six, None).model.encoding(0).largest_position() == 7


def test_scores_are_those_at_the_positions_by_the_loop() -> None:
    run = Run(trial(), None)
    for _ in run.losses():
        pass
    assert run.score() == {}
    rows = [row for row in run.rows.table().to_pylist() if row["kind"] == "bits"]
    for length in TASK.lengths:
        batch = TASK.scored(length)
        at = Positions.at(torch.tensor(by_loop(batch.tokens.tolist(), 0)))
        with torch.no_grad():
            logits = run.model(batch.tokens, run.model.prepare(at))
        bits = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none", ignore_index=IGNORE) / math.log(2)
        expected = bits.sum(1) / (batch.targets != IGNORE).sum(1)
        got = torch.tensor([row["value"] for row in rows if row["length"] == length])
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_only_tasks_with_numbers_count_digits() -> None:
    copy = {"name": "copy", "length": 4, "lengths": [4]}
    with pytest.raises(ValueError, match=r"learned\+abacus: counts the digits of numbers, and the task copy has none"):
        trial(task=copy)
    with pytest.raises(ValueError, match=r"unknown encoding 'learned\+abacus'"):
        Arm.parse("learned+abacus+randomized")


def test_the_longest_length_decides_the_weights() -> None:
    shorter = trial(task={**TASK.model_dump(), "lengths": (2, 3)})
    assert shorter.weights_key("") != trial().weights_key("")
    assert trial("learned").weights_key("") == trial("learned", task=shorter.task.model_dump()).weights_key("")
