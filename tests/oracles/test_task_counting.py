"""The task counting against a loop over the instructions."""

import torch

from posenc.lab.tasks.counting import Counting
from posenc.lab.tasks.task import IGNORE

ZERO, ADD = 13, 12


def test_the_answer_by_a_loop():
    task = Counting(length=24, lengths=(24, 96), held_out=64)
    for batch in (task.scored(24), task.scored(96), task.training_batch(64, torch.Generator().manual_seed(0))):
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            count = 0
            for token in tokens:
                count = 0 if token == ZERO else count + (token == ADD)
            assert targets[-1] == count
            assert set(targets[:-1]) <= {IGNORE}
            assert (tokens[0], tokens[-1]) == (10, 14)


def test_answers_are_uniform_and_fit_short_rows():
    task = Counting(length=24, lengths=(24,), held_out=2000)
    counts = torch.bincount(task.scored(24).targets[:, -1], minlength=10)
    assert counts.min() > 130
    assert counts.max() < 270
    short = task.draw(200, 3, torch.Generator().manual_seed(0))
    assert set(short.targets[:, -1].tolist()) == {0, 1, 2}
    assert short.tokens.shape == (200, task.tokens(3))
