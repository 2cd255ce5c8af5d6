"""Random Markov chains: the best prediction against the exact likelihood of whole rows, and chains as they are meant."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import gammaln

from lab_sweeps import Here
from posenc.lab.experiment import Experiment, Trial
from posenc.lab.findings.arm_cells import converged_arm
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.beyond import refused, share_gained
from posenc.lab.records.results import Folder
from posenc.lab.report import beyond, floor
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import as_data
from posenc.lab.report.tables import tables
from posenc.lab.run.sweep import sweep
from posenc.lab.tasks.chains import Chains, polya_bits
from posenc.lab.tasks.task import CUT, FROZEN, IGNORE, MAJORITY, OPTIMUM
from posenc.lab.trial.training import run_trial

SMALL = Chains(length=16, lengths=(16, 64), symbols=4, concentration=0.3, targets=8, held_out=32, standard_error=0.1)


def likelihood(row: list[int], symbols: int, a: float) -> float:
    """log2 of the probability of all symbols but the first, given it: ∏ over rows of Γ(Va)/Γ(Va + n) ∏ Γ(a + n_j)/Γ(a)."""
    counts = np.zeros((symbols, symbols))
    for before, after in pairwise(row):
        counts[before, after] += 1
    whole = gammaln(symbols * a) - gammaln(symbols * a + counts.sum(1)) + (gammaln(a + counts) - gammaln(a)).sum(1)
    return float(whole.sum() / math.log(2))


@pytest.mark.parametrize(("symbols", "a"), [(2, 1.0), (4, 0.3), (16, 0.2)])
def test_the_best_prediction_is_the_exact_likelihood(symbols: int, a: float) -> None:
    """Integrated over all chains, by the formula of Dirichlet and multinomial."""
    rows = Chains(symbols=symbols, concentration=a).draw(20, 200, torch.Generator().manual_seed(1))
    bits = polya_bits(rows, symbols, a, 1)
    expected = [-likelihood(row, symbols, a) for row in rows.tolist()]
    assert bits.sum(1).tolist() == pytest.approx(expected, rel=1e-12)


def test_no_other_prediction_is_better_on_all_rows() -> None:
    """The predictions of every row of two symbols add up to one, weighted by the exact probability of the row."""
    rows = torch.tensor([[0, *rest] for rest in product(range(2), repeat=7)])
    bits = polya_bits(rows, 2, 0.5, 1)
    assert (2 ** -bits.sum(1)).sum().item() == pytest.approx(1.0, abs=1e-12)


def test_counts_without_order_by_hand() -> None:
    """a = 1, V = 2, symbols 0 0 1: after 0: (1 + 1)/(1 + 2); after 0 0: (0 + 1)/(2 + 2)."""
    assert polya_bits(torch.tensor([[0, 0, 1]]), 2, 1.0, 0).tolist() == [pytest.approx([-math.log2(2 / 3), 2.0])]
    assert polya_bits(torch.tensor([[0, 0, 1]]), 2, 1.0, 2).tolist() == [[1.0, 1.0]]  # no pair was seen before


def test_the_first_measure_is_reproduced() -> None:
    """V = 16, a = .2, mean over the last 64 symbols: measured outside the project, on other chains."""
    task = Chains(held_out=1024)
    floors = [task.floor(length) for length in task.lengths]
    assert floors == pytest.approx([2.991, 2.667, 2.516, 2.420, 2.357], abs=0.04)
    assert floors == sorted(floors, reverse=True)
    assert 3.7 < task.baseline() < task.chance(128) == 4.0


def test_chains_are_drawn_as_described() -> None:
    """Transitions of one chain have the frequencies of its row, and rows have the mean and spread of their Dirichlet."""
    long = Chains(symbols=3, concentration=0.5).draw(64, 4000, torch.Generator().manual_seed(2)).numpy()
    shares = []
    for row in long:
        counts = np.zeros((3, 3))
        np.add.at(counts, (row[:-1], row[1:]), 1)
        shares += [one / one.sum() for one in counts if one.sum() > 200]
    assert np.mean(shares, 0) == pytest.approx([1 / 3] * 3, abs=0.1)
    first = Chains().draw(4096, 2, torch.Generator().manual_seed(3))[:, 0]
    assert np.bincount(first, minlength=16) / 4096 == pytest.approx([1 / 16] * 16, abs=0.02)
    again = Chains().draw(8, 50, torch.Generator().manual_seed(4))
    assert torch.equal(again, Chains().draw(8, 50, torch.Generator().manual_seed(4)))


def test_lengths_are_scored_on_the_same_chains_and_only_the_last_symbols() -> None:
    short, long = SMALL.scored(16), SMALL.scored(64)
    assert torch.equal(short.tokens, long.tokens[:, -16:])
    assert torch.equal(short.targets[:, -8:], long.targets[:, -8:])
    assert (long.targets != IGNORE).sum(1).tolist() == [8] * 32
    assert torch.equal(long.targets[:, -8:-1], long.tokens[:, -7:])
    every = SMALL.all_targets(long)
    assert torch.equal(every[:, :-1], long.tokens[:, 1:])
    assert torch.equal(every[:, -8:], long.targets[:, -8:])
    batch = SMALL.training_batch(5, torch.Generator().manual_seed(0))
    assert torch.equal(batch.tokens[:, 1:], batch.targets[:, :-1])


def test_in_the_last_window_every_target_has_exactly_the_trained_length_before_it() -> None:
    whole, cut = SMALL.scored(64), SMALL.last_window()
    assert cut is not None
    row = torch.cat([whole.tokens, whole.targets[:, -1:]], dim=1)
    assert cut.tokens.shape == (32 * 8, 16)
    for n in range(8):
        end = 64 - 7 + n
        assert torch.equal(cut.tokens[n::8], row[:, end - 16 : end])
        assert torch.equal(cut.targets[n::8, -1], whole.targets[:, -8 + n])
    assert (cut.targets != IGNORE).sum().item() == 32 * 8
    assert cut.item is not None
    assert cut.item.tolist() == [n for n in range(32) for _ in range(8)]
    assert Chains(length=16, lengths=(16,), targets=8).last_window() is None
    assert Chains(length=16, lengths=(16, 20), targets=8).last_window() is None  # some windows would begin before the row


def test_floor_is_the_mean_of_the_scored_symbols() -> None:
    rows = torch.cat([SMALL.scored(64).tokens, SMALL.scored(64).targets[:, -1:]], dim=1)
    for length in SMALL.lengths:
        ends = [row[-length - 1 :] for row in rows.tolist()]
        bits = [likelihood(row[:-8], 4, 0.3) - likelihood(row, 4, 0.3) for row in ends]
        assert SMALL.floor(length) == pytest.approx(np.mean(bits) / 8, rel=1e-12)
    assert SMALL.grams(16)[1] == SMALL.floor(16)
    assert len(SMALL.floor_by_position()) == 64


def test_the_known_predictors_are_what_they_are_called() -> None:
    """Each by the likelihood of what it may see: the window, the whole row, or the first 16 symbols only."""
    row = torch.cat([SMALL.scored(64).tokens, SMALL.scored(64).targets[:, -1:]], dim=1).tolist()
    cut, frozen = np.zeros((2, 32, 8))
    for n, t in product(range(32), range(8)):
        end = 64 - 7 + t
        window = row[n][end - 16 : end]
        cut[n, t] = likelihood(window, 4, 0.3) - likelihood([*window, row[n][end]], 4, 0.3)
        seen = list(pairwise(row[n][:16]))
        before, after = row[n][end - 1], row[n][end]
        counts = [seen.count((before, symbol)) + 0.3 for symbol in range(4)]
        frozen[n, t] = -math.log2(counts[after] / sum(counts))
    near, far = SMALL.controls(None), SMALL.controls(64)
    for name in (OPTIMUM, CUT, FROZEN):
        assert near[name].tolist() == pytest.approx(cut.mean(1).tolist(), rel=1e-12)
    assert far[CUT].tolist() == pytest.approx(cut.mean(1).tolist(), rel=1e-12)
    assert far[FROZEN].tolist() == pytest.approx(frozen.mean(1).tolist(), rel=1e-12)
    assert far[OPTIMUM].mean().item() == pytest.approx(SMALL.floor(64), rel=1e-12)
    assert far[MAJORITY].mean().item() == pytest.approx(SMALL.grams(64)[0], rel=1e-12)


def test_the_measure_gives_nothing_to_the_cut_optimum_and_the_earlier_one_gave_it_half() -> None:
    """From the trained length, where targets have 1 to 64 symbols before them: what sees only one window gains too."""
    task = Chains(length=64, lengths=(64, 1024), symbols=8, held_out=128)
    near, home, far = (task.controls(length) for length in (None, 64, 1024))
    scores = {name: {0: near[name].numpy(), 64: home[name].numpy(), 1024: far[name].numpy()} for name in far}
    assert refused(share_gained, scores) is None
    assert share_gained(scores[CUT], scores[OPTIMUM]) == 0
    assert share_gained(scores[OPTIMUM], scores[OPTIMUM]) == 1
    assert abs(share_gained(scores[FROZEN], scores[OPTIMUM])) < 0.05
    assert 0.1 < share_gained(scores[MAJORITY], scores[OPTIMUM]) < 0.5  # a longer context does tell it more

    def saved(score: Any, optimum: Any) -> float:
        return float((score[64] - score[1024]).mean() / (optimum[64] - optimum[1024]).mean())

    assert saved(scores[CUT], scores[OPTIMUM]) == pytest.approx(0.51, abs=0.01)
    assert refused(saved, scores) == f"the {CUT} gets 51%; expected at most 5%"
    mean, error, rows = task.gain()
    assert error < task.standard_error
    assert mean == pytest.approx(0.2845, abs=0.003)
    assert rows == 640


def test_targets_fit_the_shortest_length() -> None:
    with pytest.raises(ValueError, match="targets: expected at most the shortest length, 16, got 17"):
        Chains(length=16, lengths=(16, 32), targets=17)


def test_the_report_has_the_floor_the_excess_and_what_is_gained_beyond(tmp_path: Path) -> None:
    """An untrained model is far above the floor at every length, and the page has both."""
    task = {"name": "chains", "length": 16, "lengths": (16, 64), "symbols": 4, "concentration": 0.3, "targets": 8}
    task["standard_error"] = 0.1
    plan = {"task": {**task, "held_out": 8}, "training": {"steps": 3, "rows": 2}}
    size = {"d_model": 16, "n_heads": 2, "n_layers": 1}
    made = Experiment(
        name="tiny", about={"en": "tiny", "zh": "tiny"}, encodings=("nope", "rope"), seeds=1, size=size, tasks=(plan,)
    )
    sweep(made, Folder(tmp_path), Here())
    found = findings(tmp_path)
    (of,) = found["tasks"]
    expected = Chains(**plan["task"])
    assert of["floor"]["lengths"] == {"16": expected.floor(16), "64": expected.floor(64)}
    assert of["floor"]["by_position"]["bits"] == expected.floor_by_position()
    assert "counts symbols without their order" in of["gate"]["rule"]["en"]
    positions = of["arms"][0]["by_position"]
    assert (positions["length"], len(positions["bits"])) == (64, 64)
    tail = np.mean(positions["bits"][-8:])
    assert of["arms"][0]["cells"]["64"]["mean"] == pytest.approx(tail, rel=1e-5)
    for arm in of["arms"]:  # as if it had learnt the task
        arm["learnt"] = True
        near, gained = arm["last_window"]["mean"], arm["gained"]["64"]
        assert gained["mean"] == pytest.approx(near - arm["cells"]["64"]["mean"], abs=1e-6)
        offered = expected.controls(None)[OPTIMUM].mean() - expected.floor(64)  # type: ignore[index]
        assert gained["share"] == pytest.approx(gained["mean"] / offered.item(), rel=1e-5)
        assert gained["interval"][0] < gained["mean"] < gained["interval"][1]
    rows = {row[0].en: [words.en for words in row[1:]] for row in floor.rows(of)}
    assert rows["best prediction (Bayes)"] == [f"{expected.floor(length):.3f}" for length in (16, 64)]
    assert {"counts after 0 symbols", "counts after 2 symbols"} <= rows.keys()
    table = {row[0].en: [words.en for words in row[1:]] for row in beyond.rows(of)}
    assert table["optimum"][-1] == "100%"
    assert table["optimum, cut to the last window"][-2:] == ["+0.000", "0%"]
    assert table["RoPE (not learnt)"][0] == f"{of['arms'][1]['last_window']['mean']:.2f}"
    assert "floors" in [section["name"] for section in as_data(found)["sections"]]
    assert "## Gained beyond the trained length" in markdown(found, "en")
    assert "gained.csv" in tables(found)


def test_the_loss_at_the_longest_length_is_followed_in_the_last_fifth_of_training() -> None:
    """Its last point is the score of the finished model on the same rows."""
    trial = Trial.model_validate(
        {
            "encoding": "alibi",
            "task": SMALL.model_dump(),
            "training": {"steps": 20, "rows": 8, "learning_rate": 0.004},
            "size": {"d_model": 16, "n_heads": 2, "n_layers": 1},
            "seed": 0,
        }
    )
    record = run_trial(trial, None)
    assert record is not None
    rows = record.rows.to_pylist()
    far = {row["step"]: row["value"] for row in rows if row["kind"] == "far"}
    last = [row["value"] for row in rows if row["kind"] == "bits" and row["length"] == 64 and row["item"] < 32]
    assert list(far) == [16, 17, 18, 19, 20]
    assert len(last) == 32
    assert far[20] == pytest.approx(sum(last) / 32, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "far", "expected"), [(0.04, 1.6, True), (0.2, 1.6, False), (-0.2, 1.6, False), (0.2, 2.6, True)]
)
def test_converged_includes_the_longest_length_unless_it_has_broken(changes: float, far: float, expected: bool) -> None:
    cells = {"16": {"mean": 2.0}, "64": {"mean": far}}
    of = SimpleNamespace(length=16, lengths=[16, 64], measure="bits")
    assert converged_arm(of, cells, {"0": 0.01}, {"0": changes}) is expected  # type: ignore[arg-type]
    assert converged_arm(of, cells, {"0": 0.06}, {"0": changes}) is False  # type: ignore[arg-type]
