"""The ladder: one experiment at several scales, on made-up numbers whose order is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab_results import Asked, write
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.ladder import Scale, ladder
from posenc.lab.report.ladder import ladder_report
from posenc.lab.report.ladder_pictures import ladder_pictures
from test_lab_commands import posenc

ENCODINGS = ("nope", "rope", "alibi", "t5")
BELOW = {"nope": 3.6, "rope": 2.0, "alibi": 2.2, "t5": 2.4}  # NoPE is not learnt: 3.9 bits need no context


def rung(path: Path, bits: dict[str, float], extra: Callable[[Asked], float] = lambda asked: 0.0) -> Scale:
    """Longer inputs cost 0.1 bits a doubling; seeds differ by 0.01 bits."""

    def value(asked: Asked) -> float:
        return bits[asked.encoding] + 0.1 * (asked.times - 1) + 0.01 * asked.seed + extra(asked)

    write(path, tasks=["language_model"], encodings=ENCODINGS, value=value, items=4, looks=False, after=())
    return Scale(path.name, findings(path))


@pytest.fixture(scope="module")
def low(tmp_path_factory: pytest.TempPathFactory) -> Scale:
    return rung(tmp_path_factory.mktemp("low") / "x1", BELOW)


def step(found: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return dict(found["steps"][number])


def test_the_same_order_is_a_correlation_of_one(low: Scale, tmp_path: Path) -> None:
    found = ladder([low, rung(tmp_path / "x4", {name: bits - 0.3 for name, bits in BELOW.items()})])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [(one["length"], one["spearman"], one["interval"]) for one in found["steps"]] == [
        (64, pytest.approx(1), pytest.approx([1, 1])),
        (512, pytest.approx(1), pytest.approx([1, 1])),
    ]
    assert step(found)["swapped"] == step(found)["unsure"] == []
    assert found["learnt_from"] == {"nope": "x4", "rope": "x1", "alibi": "x1", "t5": "x1"}


def test_pairs_that_change_places_by_hand(low: Scale, tmp_path: Path) -> None:
    """RoPE and ALiBi change places in every seed; ALiBi and T5 by their means, and in one seed of three the other way.

    Ranks of nope, rope, alibi, t5: 4 1 2 3 and 4 3 2 1, so Spearman's correlation is 1 - 6 · (4 + 4) / (4 · 15) = 0.2.
    """
    above = {"nope": 3.0, "rope": 2.6, "alibi": 2.1, "t5": 2.0}
    tied = rung(tmp_path / "x4", above, lambda asked: 0.2 if (asked.encoding, asked.seed) == ("t5", 2) else 0.0)
    found = step(ladder([low, tied]))
    assert found["spearman"] == pytest.approx(0.2)
    assert found["swapped"] == [["rope", "alibi"], ["rope", "t5"]]
    assert found["unsure"] == [["alibi", "t5"]]
    low, high = found["interval"]
    assert low <= 0.2 <= high
    assert high > 0.2  # in draws with much of seed 2, ALiBi stays before T5


def test_the_report_says_it_in_both_languages(low: Scale, tmp_path: Path) -> None:
    above = {"nope": 3.0, "rope": 2.6, "alibi": 2.1, "t5": 2.0}
    found = ladder([low, rung(tmp_path / "x4", above)])
    english, chinese = ladder_report(found, "en"), ladder_report(found, "zh")
    assert "| NoPE | 3.61 (not learnt) | 3.01 |" in english
    assert "| x1 → x4 | 64 | 4 | 0.20 (0.20–0.20) | RoPE / ALiBi, RoPE / T5, ALiBi / T5 | none |" in english
    assert "| NoPE | x4 |" in english
    assert "| NoPE | 3.61 (未学会) | 3.01 |" in chinese
    assert english.count("|") == chinese.count("|")


def test_pairs_that_keep_their_order_by_hand(low: Scale, tmp_path: Path) -> None:
    """RoPE and ALiBi change places; T5 is better than NoPE everywhere, but at x4 not in seed 2."""
    above = {"nope": 3.0, "rope": 2.2, "alibi": 2.1, "t5": 2.9}
    mixed = rung(tmp_path / "x4", above, lambda asked: 0.2 if (asked.encoding, asked.seed) == ("t5", 2) else 0.0)
    found = ladder([low, mixed])
    kept = next(one for one in found["kept"] if one["length"] == 64)
    assert kept["of"] == 6
    assert kept["pairs"] == [["rope", "nope"], ["alibi", "nope"], ["rope", "t5"], ["alibi", "t5"]]
    assert "4 of 6 pairs have the same order" in ladder_report(found, "en")
    assert "RoPE before NoPE, T5; ALiBi before NoPE, T5." in ladder_report(found, "en")
    turned = ladder([low, rung(tmp_path / "b", {name: 5 - bits for name, bits in BELOW.items()})])
    assert turned["kept"][0]["pairs"] == []
    assert "no pair has the same order" in ladder_report(turned, "en")


def scaled(rung: Scale, steps: int, width: int) -> Scale:
    """The same findings, as if of other steps and another width; tokens follow the steps."""
    (task,) = rung.findings["tasks"]
    changed = {**task, "training": {**task["training"], "steps": steps}, "trained_tokens": 1000 * steps}
    size = {**rung.findings["size"], "d_model": width}
    return Scale(rung.name, {**rung.findings, "tasks": [changed], "size": size})


@pytest.mark.acceptance
def test_neighbours_differ_in_one_thing(tmp_path: Path) -> None:
    """More steps of the same model, or a larger model with as many steps, never both."""
    scales = {"x1": (1, 64), "x4": (4, 64), "x16": (16, 64), "wide-x4": (4, 128)}
    rungs = [scaled(rung(tmp_path / name, BELOW), *how) for name, how in scales.items()]
    compared = [(one["from"], one["to"]) for one in ladder(rungs)["steps"] if one["length"] == 64]
    assert compared == [("x1", "x4"), ("x4", "x16"), ("x4", "wide-x4")]


@pytest.mark.acceptance
def test_a_score_that_more_steps_improve_is_not_converged(tmp_path: Path) -> None:
    """0.04 bits are less than the 0.05 of the criterion, 0.06 are more; a larger model says nothing here."""
    lower = scaled(rung(tmp_path / "x1", BELOW), 1, 64)
    assert all(arm["converged"] is not False for arm in lower.task["arms"])
    longer = {**BELOW, "rope": BELOW["rope"] - 0.06, "alibi": BELOW["alibi"] - 0.04}
    found = ladder([lower, scaled(rung(tmp_path / "x4", longer), 4, 64)])["arms"]
    assert [found[name][0]["converged"] is False for name in ENCODINGS] == [False, True, False, False]
    assert "2.01 ↓ | 1.95 |" in ladder_report(ladder([lower, scaled(rung(tmp_path / "more", longer), 4, 64)]), "en")
    wide = ladder([lower, scaled(rung(tmp_path / "wide", longer), 1, 128)])["arms"]
    assert not any(wide[name][0]["converged"] is False for name in ENCODINGS)


@pytest.mark.acceptance
def test_pictures_of_a_ladder(tmp_path: Path) -> None:
    """A curve and a ring for each encoding, a dot for each seed; one picture for each length and language."""
    scales = {"x1": (1, 64), "x4": (4, 64), "wide-x4": (4, 128)}
    rungs = [scaled(rung(tmp_path / name, BELOW), *how) for name, how in scales.items()]
    found = ladder(rungs)
    drawn = ladder_pictures(found)
    assert sorted(drawn) == ["scores-512.svg", "scores-512.zh-CN.svg", "scores-64.svg", "scores-64.zh-CN.svg"]
    for picture in drawn.values():
        assert picture.count('class="curve"') == picture.count('class="ring"') == len(ENCODINGS)
        assert picture.count('class="dot"') == 3 * 2 * len(ENCODINGS)
    report = ladder_report(found, "zh")
    assert "区间只来自 3 个种子" in report
    assert "The intervals come from 3 seeds" in ladder_report(found, "en")
    assert "优于 " in report
    assert all((f"]({name})" in report) == name.endswith(".zh-CN.svg") for name in drawn)
    assert ladder_pictures(ladder(rungs[:1])) == {}


MICRO = """
name: small-ladder
about: {en: Two scales., zh: 两个规模。}
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope, alibi, rope]
rungs: [{name: x1}, {name: x2, steps: 2, size: {d_model: 32, n_heads: 2, n_layers: 1}}]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 4, rows: 4}
"""


@pytest.mark.acceptance
def test_a_ladder_is_run_rung_by_rung_and_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MICRO)
    out = tmp_path / "out"
    first = posenc("lab", "run", str(tmp_path / "mine.yaml"), "--out", str(out), "--workers", "1", "--lang", "en")
    assert first.code == 0, first.err
    assert "# Is it the encoding or the budget?" in first.out
    found = json.loads((out / "report" / "ladder.json").read_text("utf-8"))
    assert [(one["name"], one["steps"], one["size"]["d_model"]) for one in found["rungs"]] == [("x1", 4, 16), ("x2", 8, 32)]
    assert all(one["trials"] == {"expected": 3, "found": 3, "failed": 0} for one in found["rungs"])
    again = posenc("lab", "report", str(out), "--lang", "zh")
    assert again.code == 0, again.err
    assert "# 差别来自编码还是预算？" in again.out


def test_the_preset_ladder_has_four_scales() -> None:
    experiment = read_experiment("ladder")
    assert len(experiment.encodings) == 8
    steps = [experiment.at(one).tasks[0].training.steps for one in experiment.rungs]
    assert [one / steps[0] for one in steps] == [1, 4, 16, 4]
    assert {experiment.at(one).size.d_model for one in experiment.rungs} == {64, 128}
