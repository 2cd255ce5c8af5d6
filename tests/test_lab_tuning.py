"""What tuning changed in the ranks, on made-up scores whose answer is known by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import experiment, made_up, made_up_sweep
from posenc.lab.findings.tuning import ranked, tuning
from posenc.lab.records.record import Record
from posenc.lab.records.results import Folder
from posenc.lab.report import tuning as view
from posenc.lab.report.document import Block, Table, Text
from posenc.lab.report.provenance import rate
from posenc.support.languages import Words

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


def told(blocks: Iterator[Block]) -> tuple[Words, list[list[Words]]]:
    """The sentence and the rows of the table below it."""
    text, table = blocks
    assert isinstance(text, Text)
    assert isinstance(table, Table)
    return text.words, [[cell.words for cell in row] for row in table.rows]


def test_it_is_told_in_both_languages(found: dict[str, Any]) -> None:
    task = {"name": "copy", "measure": "exact", "title": {"en": "Copy", "zh": "复制"}}
    said, rows = told(view.blocks({"tasks": [task], "tuning": found}))
    assert "Tuning changed the rank of 3 of 3 encodings, at most by 2." in said.en
    assert "3 种编码中，3 种的名次因调参而变，最多变 2。" in said.zh
    assert [words.en for words in rows[0]] == ["RoPE", "0.002 (edge)", "40.0", "90.0", "3 → 1"]
    assert [row[1].zh for row in rows] == ["0.002（边缘）", "0.008（边缘）", "0.004"]
    assert "Edge: no smaller or no larger value was tried" in said.en
    assert "own scale" not in said.en  # none was tried
    assert list(view.blocks({"tasks": [task]})) == []


def test_an_encoding_with_unfinished_tries_is_not_ranked() -> None:
    plan = {"training": {"learning_rate": 0.004, "steps": 6}, "learning_rates": [0.004, 0.002]}

    def entry(rate: float, score: float | None) -> dict[str, Any]:
        return {"learning_rate": rate, "options": [], "score": score}

    tried = {
        "rope": [entry(0.004, 2.0), entry(0.002, None)],  # one try diverged
        "alibi": [entry(0.002, 1.5), entry(0.004, 2.5)],
        "t5": [entry(0.004, 1.0)],
    }
    copy = ranked("bits", plan, tried)
    assert [(row["name"], row["tuned"]) for row in copy["rows"]] == [("alibi", 1.5), ("rope", 2.0)]
    assert copy["waiting"] == 1
    assert view.setting({"learning_rate": 0.004, "options": [["base", 500.0]]}) == "0.004, base 500"


def test_own_scales_and_short_tries_are_told() -> None:
    """RoPE tried two bases at 0.004 in place of the last two rates; 500 is an edge, and 0.002 of three rates is not."""
    plan = {
        "training": {"learning_rate": 0.004, "steps": 3900},
        "learning_rates": [0.004, 0.002, 0.001, 0.008, 0.016],
        "tuning_steps": 400,
    }

    def entry(score: float, rate: float = 0.004, **options: float) -> dict[str, Any]:
        return {"learning_rate": rate, "options": [list(option) for option in options.items()], "score": score}

    rope = [entry(1.0, base=500.0), entry(2.0), entry(2.1, 0.002), entry(2.2, 0.001), entry(3.0, base=1e5)]
    alibi = [entry(1.5, 0.002), entry(2.0), entry(2.2, 0.001), entry(3.0, 0.008), entry(3.0, 0.016)]
    found = ranked("bits", plan, {"rope": rope, "alibi": alibi})
    assert {row["name"]: row["edge"] for row in found["rows"]} == {"rope": True, "alibi": False}
    task = {"name": "text", "title": {"en": "Text", "zh": "文本"}, "measure": "bits",
            "learning_rates": plan["learning_rates"],
            "training": plan["training"], "own_scales": {"rope": 2}, "joint_scales": {}, "settings": {},
            "arms": [{"name": "rope", "learning_rate": 0.004}, {"name": "alibi", "learning_rate": 0.002}]}  # fmt: skip
    said, rows = told(view.blocks({"tasks": [task], "tuning": {"text": found}}))
    assert "A try has 400 of the 3900 steps" in said.en
    assert "own scale were tried at the learning rate 0.004 only" in said.en
    assert rows[0][1].en == "0.004, base 500 (edge)"
    assert rate(task).en == (
        "chosen from 0.004, 0.002, 0.001, 0.008, 0.016 at the trained length, per encoding: ALiBi 0.002; "
        "chosen from 0.004, 0.002, 0.001, and 2 values of the own scale at 0.004: RoPE 0.004"
    )


def test_where_no_row_is_right_yet_bits_decide(tmp_path: Path) -> None:
    """The report names the setting that the sweep chose, not the first of equal ones."""

    def none_right(trial: Any, *rest: Any) -> Record:
        return made_up(trial, *rest, exact=0.0, bits=3.0 - 100 * trial.training.learning_rate)

    training, task = {"steps": 6, "rows": 4, "learning_rate": 0.004}, {"name": "copy", "length": 4, "lengths": (4, 8)}
    plan = {"task": task, "training": training, "learning_rates": (0.004, 0.002, 0.008)}
    made_up_sweep(tmp_path, train=none_right, experiment=experiment(seeds=1, encodings=("rope",), tasks=(plan,)))
    folder = Folder(tmp_path)
    manifest = folder.experiment() or {}
    (row,) = tuning(folder, manifest)["copy"]["rows"]
    assert manifest["chosen"][0]["learning_rate"] == row["chosen"]["learning_rate"] == 0.008
    assert (row["untuned"], row["tuned"], row["edge"]) == (0.0, 0.0, True)


def test_nothing_is_said_without_tuning(tmp_path: Path) -> None:
    made_up_sweep(tmp_path, experiment=experiment(seeds=1, encodings=("nope",)))
    folder = Folder(tmp_path)
    assert tuning(folder, folder.experiment() or {}) == {}
