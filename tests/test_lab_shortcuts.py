"""What answers get that need no position: the old passkey gives half of its rows away, with distractors almost none."""

import pytest
import torch

from lab_sweeps import Here
from posenc.lab.commands import run
from posenc.lab.experiment import PRESETS, read_experiment
from posenc.lab.records.record import SAME_TARGETS, Rows
from posenc.lab.records.results import Folder
from posenc.lab.run.sweep import sweep
from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.recall import Recall
from posenc.lab.tasks.shortcuts import AT_MOST, WITHOUT_POSITION, given_away, shortcuts
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


LOOSE = Recall(length=8, lengths=(8, 32), keys=40, values=64, queries=1, loose=1)


def test_values_of_no_pair_leave_nothing_to_count_in_recall():
    assert max(LOOSE.shortcuts(length)[name].in_order for length in (8, 32) for name in WITHOUT_POSITION) < AT_MOST
    assert given_away(LOOSE) == ""


def test_a_key_that_is_asked_for_stands_once_before_and_its_value_behind_it():
    for length in (8, 32):
        batch = LOOSE.scored(length)
        assert batch.tokens.shape[1] == LOOSE.tokens(length)
        for row, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            *before, asked = row
            assert before.count(asked) == 1
            assert before[before.index(asked) + 1] == targets[-1] != IGNORE
            assert sum(token < LOOSE.values for token in row) == 2 * length  # of pairs, and of none


def test_recall_without_loose_values_is_the_task_of_old_records():
    """Its settings, and so the keys of stored trials; and its rows, by a sum that was taken before there were any."""
    old = Recall(length=8, lengths=(8, 32), values=4, queries=1)
    assert "loose" not in old.model_dump()
    assert int(old.scored(32).tokens.sum()) == 186416


def test_a_new_folder_refuses_a_task_that_counting_solves_and_an_old_one_goes_on(tmp_path):
    text = (
        "name: away\nabout: {en: a, zh: a}\nencodings: [nope]\nseeds: 1\nsize: {d_model: 16, n_heads: 2, n_layers: 1}\n"
        "tasks:\n  - task: {name: recall, length: 4, lengths: [4, 8], values: 4, queries: 1, held_out: 64}\n"
        "    training: {steps: 1}\n"
    )
    (tmp_path / "away.yaml").write_text(text)
    experiment = read_experiment(str(tmp_path / "away.yaml"))
    wanted = run.Wanted(experiment, tmp_path / "out")
    with pytest.raises(ValueError, match=r"tasks: recall: at length 4 \d\d% of the rows are right without positions"):
        run.examined(wanted)
    assert not (tmp_path / "out").exists()
    sweep(experiment, Folder(tmp_path / "out"), Here())  # as posenc did before
    run.examined(wanted)


def test_no_preset_is_refused():
    for name in PRESETS:
        assert [given_away(plan.task) for plan in read_experiment(name).tasks if not plan.task.reads_text] == [
            "" for plan in read_experiment(name).tasks if not plan.task.reads_text
        ], name
