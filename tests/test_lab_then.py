"""Training on after a change of a trained RoPE model: YaRN at a longer length, and positions dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import in_process
from lab_sweeps import without_workers
from posenc.lab.experiment import Trial, parse
from posenc.lab.findings import sentences
from posenc.lab.findings.titles import change_title
from posenc.lab.trial.training import Hardware, Run, run_trial

EXPERIMENT = """
name: tiny
about: {en: Tiny., zh: 极小。}
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [rope, nope]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8, 16], held_out: 16}
    training: {steps: 6, rows: 8}
    after: [yarn]
    then:
      - {change: yarn, steps: 5, length: 16}
      - {change: drop, steps: 3, length: 4, learning_rate: 0.001}
"""
WORDS = ("yarn, 5 steps at 16", "drop, 3 steps at 4, rate 0.001")


def trial(**changed: Any) -> Trial:
    (found,) = [one for one in parse(EXPERIMENT, Path()).trials() if one.encoding == "rope"]
    return Trial.model_validate(found.model_dump(mode="json") | changed)


def rows(record: Any) -> list[Any]:
    assert record is not None
    return [row for row in record.rows.to_pylist() if row["kind"] in ("bits", "exact")]


def test_the_trained_model_is_scored_as_if_nothing_came_after() -> None:
    alone, record = run_trial(trial(then=[]), None), run_trial(trial(), None)
    assert [row for row in rows(record) if row["change"] not in WORDS] == rows(alone)
    for word in WORDS:
        assert {row["length"] for row in rows(record) if row["change"] == word} == {4, 8, 16}
    assert record is not None
    assert alone is not None
    assert record.about["trained_tokens"] == alone.about["trained_tokens"]
    assert "then" not in alone.about
    about = record.about["then"]
    assert about[WORDS[0]]["tokens"] <= 5 * 2 * 34  # 8 rows of 10 tokens are as many as 2 rows of 34
    assert run_trial(trial(), None).rows.equals(record.rows)  # type: ignore[union-attr]


def test_every_one_starts_from_the_trained_model() -> None:
    both, second = run_trial(trial(), None), run_trial(trial(then=[trial().model_dump(mode="json")["then"][1]]), None)
    assert [row for row in rows(both) if row["change"] == WORDS[1]] == [
        row for row in rows(second) if row["change"] == WORDS[1]
    ]


def test_dropped_then_trained_is_a_model_without_positions() -> None:
    """Nothing but the positions changes before the first step."""
    run = Run(trial(), None)
    assert run.train() is None
    seen = list[Any]()
    run.steps_of = lambda model, *rest: seen.append(model) or iter([1.0])  # type: ignore[method-assign, func-returns-value]
    for one in run.trial.then:
        run.train_on(one)
    yarn, dropped = seen
    assert yarn is not run.model
    assert yarn.encoding(0).frequencies != run.model.encoding(0).frequencies
    assert type(dropped.encoding(0)).__name__ == "PositionalEncoding"
    assert all((a == b).all() for a, b in zip(run.model.layers.parameters(), dropped.layers.parameters(), strict=True))


def test_it_decides_the_key_and_not_the_trained_weights() -> None:
    assert trial().key("") != trial(then=[]).key("")
    assert trial().weights_key("") == trial(then=[]).weights_key("")
    assert "then" not in trial(then=[]).model_dump(mode="json")
    assert all(one.then == () for one in parse(EXPERIMENT, Path()).trials() if one.encoding == "nope")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("length: 16}", "length: 12}", "then: expected a length among (4, 8, 16), got 12"),
        ("change: yarn,", "change: self_extend,", "self_extend is for models that are not trained on"),
        ("change: yarn,", "change: yran,", "expected one of interpolation, ntk, ntk_by_parts, yarn"),
        ("steps: 5", "steps: 0", "steps: expected a number of at least 1"),
        ("[rope, nope]", "[nope]", "has no encoding rope"),
    ],
)
def test_a_wrong_one_is_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    from posenc.lab.experiment import read_experiment

    (tmp_path / "wrong.yaml").write_text(EXPERIMENT.replace(old, new), "utf-8")
    with pytest.raises(ValueError, match=r"wrong\.yaml") as error:
        read_experiment(str(tmp_path / "wrong.yaml"))
    assert said in str(error.value)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a finished sweep, and what it printed."""
    base = tmp_path_factory.mktemp("then")
    (base / "tiny.yaml").write_text(EXPERIMENT, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        without_workers(patch)
        ended = in_process.posenc("lab", "run", base / "tiny.yaml", "--out", base / "out", "--json")
    assert ended.returncode == 0, ended.stderr
    return base / "out", ended.stdout


def test_the_report_shows_the_chain(ran: tuple[Path, str]) -> None:
    folder, printed = ran
    (task,) = json.loads(printed)["tasks"]
    assert [one["change"] for one in task["after"]] == ["", "yarn", *WORDS]
    for one in task["after"][2:]:
        assert all(cell["mean"] is not None for cell in one["cells"].values())
    report = (folder / "report" / "report.md").read_text("utf-8")
    for word in WORDS:
        assert change_title(word).en in report
    page = (folder / "report" / "index.html").read_text("utf-8")
    for shown in (report, page):
        assert "those whose names give steps were trained on after it" in shown
        assert "further training" not in shown


def test_the_sentence_about_changes_says_that_some_were_trained_on() -> None:
    def said(change: str) -> str:
        cells = {"4": {"mean": 1.0, "seeds": {"0": 1.0}}, "16": {"mean": 0.5, "seeds": {"0": 0.5}}}
        task = {
            "measure": "exact", "length": 4, "lengths": [4, 16], "arms": [{"name": "rope", "learnt": True, "cells": cells}],
            "after": [{"change": "", "cells": cells}, {"change": change, "cells": cells}],
        }  # fmt: skip
        sentence = sentences._after_training(task)
        assert sentence is not None
        return sentence.en

    assert "changed, trained on where a name says so, the scores at 4×" in said(WORDS[0])
    assert "changed, and no further training, the scores at 4×" in said("yarn")
    assert change_title(WORDS[0]).both() == ("YaRN, 5 steps at 16", "YaRN，在长度 16 上 5 步")
    assert change_title(WORDS[1]).zh.endswith("，在长度 4 上 3 步，学习率 0.001")


def test_tokens_and_steps_count_what_comes_after() -> None:
    record = run_trial(trial(), None)
    assert record is not None
    tokens = record.about["trained_tokens"] + sum(one["tokens"] for one in record.about["then"].values())
    assert trial().all_steps == 6 + 5 + 3
    assert tokens <= trial().most_tokens == trial(then=[]).most_tokens * (6 + 5 + 3) // 6


def test_the_list_of_presets_counts_the_tokens_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from posenc.lab import experiment
    from posenc.lab.commands.list import presets

    monkeypatch.setattr(experiment, "PRESETS", ("tiny",))
    monkeypatch.setattr(experiment, "read_experiment", lambda name: parse(EXPERIMENT, Path()))
    (tiny,) = presets()
    a_step = 8 * 10  # 8 rows of 10 tokens
    assert tiny["tokens"] == a_step * (6 + 5 + 3) + a_step * 6  # rope and nope


def test_a_budget_counts_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    from posenc.lab.run import budget

    shared = (None, Hardware())
    monkeypatch.setattr(budget, "score", lambda given, rows, text, hardware: (2.0, 16))
    monkeypatch.setattr(budget, "after", lambda given, then, text, hardware: 7.0 * then.steps)

    def of(one: Trial) -> float:
        speed = budget.speed(shared, one, lambda share: None).speed
        return speed.of(one) - one.training.steps * speed.step

    assert of(trial(then=[])) == pytest.approx(2.0)
    assert of(trial()) == pytest.approx(3 * 2.0 + 7.0 * (5 + 3))


def test_a_budget_measures_the_steps_after_a_change() -> None:
    from posenc.lab.run import budget

    assert all(0 < budget.after(trial(), one, None, Hardware()) < 10 for one in trial().then)
    assert 0 < budget.score(trial(), 2, None, Hardware())[0] < 10


def test_the_share_done_rises_evenly_over_all_steps() -> None:
    """The estimate of the time left divides by this share."""
    shares = list[float]()
    run_trial(trial(), None, report=shares.append)
    assert shares == sorted(shares)
    assert shares[5] == pytest.approx(0.9 * 6 / 14)
    assert shares[-4] < shares[-3] < shares[-2] == pytest.approx(1.0) == shares[-1]


def test_interrupted_after_the_change_it_ends_in_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model before the change is kept and not trained again."""
    whole, seen = run_trial(trial(), None), list[Any]()
    steps_of = Run.steps_of

    def interrupted(self: Run, *given: Any) -> Any:
        for loss in steps_of(self, *given):
            seen.append(given[-1])
            if len(seen) == 6 + 3:
                raise KeyboardInterrupt
            yield loss

    with monkeypatch.context() as patched:
        patched.setattr(Run, "steps_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_trial(trial(), None, weights=tmp_path)
    assert seen[-3:] == [f" {WORDS[0]}"] * 3
    trained = list[int]()
    monkeypatch.setattr(Run, "train", lambda self: trained.append(1))
    resumed = run_trial(trial(), None, weights=tmp_path)
    assert trained == []
    assert whole is not None
    assert resumed is not None
    assert resumed.rows.equals(whole.rows)


def test_the_curve_has_two_phases_with_the_change_marked(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    asked = ("lab", "show", "copy", "rope", "seed", "0", "--in", folder)
    described = json.loads(in_process.posenc(*asked, "--json").stdout)
    assert {word: one["step"] for word, one in described["curves_then"].items()} == {
        WORDS[0]: [1, 2, 3, 4, 5],
        WORDS[1]: [1, 2, 3],
    }
    lines = [line for line in in_process.posenc(*asked).stdout.splitlines() if "┆" in line]
    for word, after in zip(WORDS, (5, 3), strict=True):
        (line,) = [line for line in lines if line.strip().startswith(word)]
        before, _, rest = line.partition("┆")
        assert len(before.split()[-1]) == 6
        assert len(rest.split()[0]) == after


def test_the_example_is_such_an_experiment() -> None:
    from posenc.lab.experiment import read_experiment

    (found,) = read_experiment(str(Path(__file__).parent.parent / "examples" / "train_on.yaml")).trials()
    assert [one.word for one in found.then] == ["yarn@4, 100 steps at 128", "drop, 100 steps at 32, rate 0.001"]
