"""What answers get that need no position: the old passkey gives half of its rows away, with distractors almost none."""

import torch

from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.recall import Recall
from posenc.lab.tasks.shortcuts import AT_MOST, WITHOUT_POSITION, shortcuts
from posenc.lab.tasks.task import IGNORE, Batch

OLD = Passkey(length=32, lengths=(32, 512), digits=2)
NEW = Passkey(length=32, lengths=(32, 512), digits=2, needles=8, loose=0.3)


def test_shares_by_hand():
    """Digits 4 7 4 occur, the answer is 4 7: drawn in this order with 2/3 · 1/2, both among the answer in every draw."""
    batch = Batch(torch.tensor([[12, 4, 7, 4, 13, 4]]), torch.tensor([[IGNORE, IGNORE, IGNORE, IGNORE, 4, 7]]))
    found = shortcuts(batch, 10)
    assert abs(found["those that occur"].in_order - 1 / 3) < 1e-6
    assert found["those that occur"].retrieved == 1
    assert found["most frequent"] == found["first"] == (1.0, 1.0)  # 4, then 7
    assert found["nearest"] == (0.0, 1.0)  # 7, then 4


def test_counting_digits_solves_half_of_the_old_passkey_and_hardly_any_of_the_new():
    assert 0.5 < OLD.shortcuts(512)["those that occur"].in_order < 0.6
    assert 0.3 < Recall(length=8, lengths=(8, 32), values=4, queries=1).shortcuts(32)["most frequent"].in_order < 0.5
    assert max(NEW.shortcuts(length)[name].retrieved for length in (32, 512) for name in WITHOUT_POSITION) < AT_MOST


def test_the_key_that_is_asked_for_by_name_is_the_answer():
    batch = NEW.scored(32)
    for row, targets, depth in zip(batch.tokens.tolist(), batch.targets.tolist(), NEW.depths(batch).tolist(), strict=True):
        name = row[-2]
        at = next(n for n, token in enumerate(row) if token == NEW.announces and row[n + 1] == name)
        assert row[at + 2 : at + 4] == [targets[-2], targets[-1]]
        needles = sum(token == NEW.announces for token in row[:at])
        assert depth == at - 1 - 4 * needles
        assert len(row) == NEW.tokens(32)
