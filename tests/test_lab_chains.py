"""Random Markov chains: the best prediction against the exact likelihood of whole rows, and chains as they are meant."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import gammaln

from posenc.lab.engines.local import Local
from posenc.lab.experiment import Experiment, Trial
from posenc.lab.findings.arm_cells import converged_arm
from posenc.lab.findings.assemble import findings
from posenc.lab.records.results import Folder
from posenc.lab.report import floor
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import page
from posenc.lab.run.sweep import sweep
from posenc.lab.tasks.chains import Chains, polya_bits
from posenc.lab.tasks.task import IGNORE
from posenc.lab.trial.training import run_trial

SMALL = Chains(length=16, lengths=(16, 64), symbols=4, concentration=0.3, targets=8, held_out=32)


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
    assert floors == pytest.approx([2.991, 2.667, 2.516, 2.420, 2.357], abs=0.03)
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
    assert torch.equal(short.tokens, long.tokens[:, :16])
    assert (long.targets != IGNORE).sum(1).tolist() == [8] * 32
    assert torch.equal(long.targets[:, -8:-1], long.tokens[:, -7:])
    every = SMALL.all_targets(long)
    assert torch.equal(every[:, :-1], long.tokens[:, 1:])
    assert torch.equal(every[:, -8:], long.targets[:, -8:])
    batch = SMALL.training_batch(5, torch.Generator().manual_seed(0))
    assert torch.equal(batch.tokens[:, 1:], batch.targets[:, :-1])


def test_floor_is_the_mean_of_the_scored_symbols() -> None:
    rows = torch.cat([SMALL.scored(64).tokens, SMALL.scored(64).targets[:, -1:]], dim=1)
    for length in SMALL.lengths:
        bits = [
            likelihood(row[: length - 7], 4, 0.3) - likelihood(row[: length + 1], 4, 0.3) for row in rows.tolist()
        ]  # fmt: skip
        assert SMALL.floor(length) == pytest.approx(np.mean(bits) / 8, rel=1e-12)
    assert SMALL.grams(16)[1] == SMALL.floor(16)
    assert len(SMALL.floor_by_position()) == 64


def test_targets_fit_the_shortest_length() -> None:
    with pytest.raises(ValueError, match="targets: expected at most the shortest length, 16, got 17"):
        Chains(length=16, lengths=(16, 32), targets=17)


def test_the_report_has_the_floor_the_excess_and_the_use_of_far_context(tmp_path: Path) -> None:
    """An untrained model is far above the floor at every length, and the page has both."""
    task = {"name": "chains", "length": 16, "lengths": (16, 64), "symbols": 4, "concentration": 0.3, "targets": 8}
    plan = {"task": {**task, "held_out": 8}, "training": {"steps": 3, "rows": 2}}
    size = {"d_model": 16, "n_heads": 2, "n_layers": 1}
    made = Experiment(
        name="tiny", about={"en": "tiny", "zh": "tiny"}, encodings=("nope", "rope"), seeds=1, size=size, tasks=(plan,)
    )
    sweep(made, Folder(tmp_path), Local(1))
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
    for arm in of["arms"]:  # as if it had learnt the task, and saved half of what the best prediction saves
        arm["learnt"], arm["behaviour"] = True, "flat"
        for length, lost in (("16", 0.5), ("64", 0.5 + (expected.floor(16) - expected.floor(64)) / 2)):
            arm["cells"][length] |= {"mean": expected.floor(int(length)) + lost, "state": None}
    rows = {row[0].en: [words.en for words in row[1:]] for row in floor.rows(of)}
    assert rows["best prediction (Bayes)"][:2] == [f"{expected.floor(length):.3f}" for length in (16, 64)]
    assert rows["RoPE"][0] == "+0.500"
    assert rows["RoPE"][2:] == ["stays", "50%"]
    assert {"counts after 0 symbols", "counts after 2 symbols"} <= rows.keys()
    assert '<section id="floors">' in page(found)
    assert "Use of far context" in markdown(found, "en")


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
