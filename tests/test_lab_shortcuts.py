"""What answers get that need no position: the old passkey gives half of its rows away, with distractors almost none."""

import torch

from posenc.lab.experiment import read_experiment
from posenc.lab.records.record import SAME_TARGETS, Rows
from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.recall import Recall
from posenc.lab.tasks.shortcuts import AT_MOST, WITHOUT_POSITION, shortcuts
from posenc.lab.tasks.task import IGNORE, Batch
from posenc.lab.trial.scoring import Scores, add_items, add_retrieved, items

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


def test_no_shortcut_of_make_run_is_above_the_limit():
    (plan,) = read_experiment("compare").tasks
    assert max(plan.task.shortcuts(n)[name].in_order for n in plan.task.lengths for name in WITHOUT_POSITION) < AT_MOST


def test_swapped_digits_are_retrieved_and_not_right():
    """Predictors whose answer is known: the key, its digits swapped, its first digit twice, and one digit of no key."""
    answer = torch.tensor([[4, 7]])
    for said, right, retrieved in (([4, 7], 1, 1), ([7, 4], 0, 1), ([4, 4], 0, 1), ([4, 2], 0, 0)):
        targets = torch.cat([torch.full((1, 3), IGNORE), answer], dim=1)
        likeliest = torch.cat([torch.full((1, 3), IGNORE), torch.tensor([said])], dim=1)
        counted = targets != IGNORE
        batch, rows = Batch(torch.zeros_like(targets), targets), Rows()
        found = Scores(torch.zeros(1, 5), (likeliest == targets).double().where(counted, 0.0), counted, likeliest)
        add_items(rows, [found], items(batch), mode=SAME_TARGETS, length=3)
        add_retrieved(rows, [found], batch, mode=SAME_TARGETS, length=3)
        values = {row["kind"]: row["value"] for row in rows.table().to_pylist()}
        assert (values["exact"], values["retrieved"]) == (right, retrieved), said
