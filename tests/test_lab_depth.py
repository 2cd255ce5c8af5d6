"""Retrieval by depth: quarters by a loop over the tokens, and shares of made-up answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lab_results
from lab_results import Asked, write
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.depth import quarters
from posenc.lab.report import depth
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import as_data
from posenc.lab.report.tables import tables
from posenc.lab.tasks.passkey import Passkey
from posenc.lab.tasks.recall import Recall

TASK = Passkey(length=8, lengths=(8, 64), held_out=24)


def by_loop(row: list[int], length: int) -> int:
    """Fillers before the announcement, token 19, are between 0 and `length`."""
    before = row.index(19) - 1
    return next(n for n in range(4) if before < (n + 1) * (length + 1) / 4)


@pytest.mark.parametrize("loose", [0, 1])
def test_the_quarter_of_a_recalled_pair_by_a_loop(loose: int) -> None:
    task = Recall(length=8, lengths=(8, 16), keys=17, values=4, queries=1, held_out=40, loose=loose)
    for length in task.lengths:
        rows, units = task.scored(length).tokens.tolist(), length * (1 + loose)
        found = [next(n for n in range(4) if row[1:-1:2].index(row[-1]) < (n + 1) * units / 4) for row in rows]
        assert quarters(task, length).tolist() == found
        assert set(found) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="recall: nothing in a row has one depth"):
        quarters(Recall(length=8, lengths=(8,), queries=2), 8)


@pytest.mark.parametrize("length", [8, 64])
def test_the_quarter_by_a_loop(length: int) -> None:
    found = quarters(TASK, length).tolist()
    assert found == [by_loop(row, length) for row in TASK.scored(length).tokens.tolist()]
    assert set(found) == {0, 1, 2, 3}


def test_an_encoding_that_sees_the_last_half_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ALiBi answers rows whose key stands in the last half, RoPE all rows."""
    about: dict[str, Any] = {"length": 8, "lengths": [8, 64], "measure": "exact", "chance": 0.0, "baseline": None}
    monkeypatch.setitem(lab_results.TASKS, "passkey", about)
    of_length = {length: quarters(TASK, length).tolist() for length in (8, 64)}

    def value(asked: Asked) -> float:
        return float(asked.encoding == "rope" or of_length[asked.length][asked.item] >= 2)

    write(tmp_path, tasks=["passkey"], encodings=("rope", "alibi"), value=value, looks=False, after=())
    found = findings(tmp_path)
    (task,) = found["tasks"]
    assert task["by_depth"]["arms"] == {
        "rope": {"8": [1, 1, 1, 1], "64": [1, 1, 1, 1]}, "alibi": {"8": [0, 0, 1, 1], "64": [0, 0, 1, 1]},
    }  # fmt: skip
    farthest = task["by_depth"]["farthest"]
    assert {name: set(by_seed.values()) for name, by_seed in farthest.items()} == {"rope": {1.0}, "alibi": {0.0}}
    assert set(farthest["rope"]) == set(task["arms"][0]["cells"]["64"]["seeds"])
    kept = [line.split(",") for line in tables(found)["cells.csv"].splitlines() if ",farthest quarter," in line]
    assert {(line[2], line[5], line[7]) for line in kept} == {("rope", "64", "1.0"), ("alibi", "64", "0.0")}
    assert [words.en for words in depth.rows(task)[1]] == ["ALiBi", "0.0", "0.0", "100.0", "100.0"] + ["0.0"] * 2 + [
        "100.0"
    ] * 2
    assert "| ALiBi | 0.0 | 0.0 | 100.0 | 100.0 |" in markdown(found, "en")
    assert "按深度的检索" in markdown(found, "zh")
    assert "depth" in [section["name"] for section in as_data(found)["sections"]]
