"""What tuning changed in the ranks, on made-up scores whose answer is known by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import experiment, made_up, made_up_sweep
from posenc.lab.findings.tuning import ranked, tuning
from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder
from posenc.lab.views import tuning as view

# At 0.004, the untuned rate, ALiBi > NoPE > RoPE; at the best rates RoPE > ALiBi > NoPE.
EXACT = {
    ("nope", 0.004): 0.5, ("nope", 0.002): 0.4, ("nope", 0.008): 0.3,
    ("alibi", 0.004): 0.6, ("alibi", 0.002): 0.1, ("alibi", 0.008): 0.7,
    ("rope", 0.004): 0.4, ("rope", 0.002): 0.9, ("rope", 0.008): 0.0,
}  # fmt: skip


def train(trial: Any, *rest: Any) -> Record:
    return made_up(trial, *rest, bits=1.0, exact=EXACT[trial.encoding, trial.training.learning_rate])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    task = {"name": "copy", "length": 4, "lengths": (4, 8), "held_out": 16}
    training = {"steps": 6, "rows": 4, "learning_rate": 0.004}
    plan = {"task": task, "training": training, "learning_rates": (0.004, 0.002, 0.008)}
    path = tmp_path_factory.mktemp("tuned")
    made_up_sweep(path, train=train, experiment=experiment(seeds=1, tasks=(plan,)))
    folder = Folder(path)
    return tuning(folder, folder.experiment() or {})


def test_ranks_before_and_after_by_hand(found: dict[str, Any]) -> None:
    copy = found["copy"]
    assert [(row["name"], row["rank_untuned"], row["rank_tuned"]) for row in copy["rows"]] == [
        ("rope", 3, 1), ("alibi", 1, 2), ("nope", 2, 3),
    ]  # fmt: skip
    assert [row["chosen"]["learning_rate"] for row in copy["rows"]] == [0.002, 0.008, 0.004]
    assert copy["rows"][0]["untuned"] == pytest.approx(0.4)
    assert (copy["tries"], copy["learning_rate"], copy["waiting"]) == (3, 0.004, 0)


def test_it_is_told_in_both_languages(found: dict[str, Any]) -> None:
    task = {"name": "copy", "measure": "exact", "title": {"en": "Copy", "zh": "复制"}}
    ((of, tuned),) = view.tuned_tasks({"tasks": [task], "tuning": found})
    said = view.introduction(of, tuned)
    assert "Tuning changed the rank of 3 of 3 encodings, at most by 2." in said.en
    assert "3 种编码中，3 种的名次因调参而变，最多变 2。" in said.zh
    assert [words.en for words in view.rows(of, tuned)[0]] == ["RoPE", "0.002", "40.0", "90.0", "3 → 1"]
    assert view.tuned_tasks({"tasks": [task]}) == []


def test_an_encoding_with_unfinished_tries_is_not_ranked() -> None:
    plan = {"training": {"learning_rate": 0.004}, "learning_rates": [0.004, 0.002]}

    def entry(rate: float, score: float | None) -> dict[str, Any]:
        return {"learning_rate": rate, "options": [], "score": score}

    tried = {
        "rope": [entry(0.004, 2.0), entry(0.002, None)],  # one try diverged
        "alibi": [entry(0.004, 2.5), entry(0.002, 1.5)],
        "t5": [entry(0.004, 1.0)],
    }
    copy = ranked("bits", plan, tried)
    assert [(row["name"], row["tuned"]) for row in copy["rows"]] == [("alibi", 1.5), ("rope", 2.0)]
    assert copy["waiting"] == 1
    assert view.setting({"learning_rate": 0.004, "options": [["base", 500.0]]}) == "0.004, base 500"


def test_nothing_is_said_without_tuning(tmp_path: Path) -> None:
    made_up_sweep(tmp_path, experiment=experiment(seeds=1, encodings=("nope",)))
    folder = Folder(tmp_path)
    assert tuning(folder, folder.experiment() or {}) == {}
