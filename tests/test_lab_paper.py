"""The table and the picture of a comparison for a paper, on made-up numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lab_results import Asked, write
from posenc.lab.commands.add import with_one_more
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.report.paper import escaped, figure, latex_table


def bits(asked: Asked) -> float:
    """2, 2.5 and 3 bits in the three seeds, so 2.50 ± 0.50; 0.25 more per multiple of the trained length."""
    home = {"nope": 3.8}.get(asked.encoding, 2.0)
    return home + 0.5 * asked.seed + 0.25 * (asked.times - 1)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = write(
        tmp_path_factory.mktemp("made-up") / "out", tasks=["language_model"], encodings=("nope", "rope", "learned"),
        value=bits, items=3, looks=False, after=(), cost=False,
    )  # fmt: skip
    return findings(folder)


def rows(table: str) -> dict[str, list[str]]:
    inside = table.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    lines = [line.removesuffix(r" \\").split(" & ") for line in inside.strip().splitlines()]
    return {line[0]: line[1:] for line in lines}


def test_the_table_by_hand(found: dict[str, Any]) -> None:
    """Six columns after the name: five lengths and how far it is valid."""
    table = latex_table(found, "rope")
    entries = rows(table)
    assert entries[r"\textbf{RoPE}"][:2] == [r"2.50\,$\pm$\,0.50", r"2.62\,$\pm$\,0.50"]
    assert entries["Learned"][1:5] == ["--"] * 4
    assert r"NoPE$^\dagger$" in entries  # 4.3 bits; a model without context has 3.9
    assert r"$^\dagger$~did not learn the trained length." in table
    assert r"$^\ddagger$" not in table
    assert {len(row) for row in entries.values()} == {6}
    assert r"\begin{tabular}{lrrrrrr}" in table
    assert table.count("{") == table.count("}")
    assert len(re.findall(r"\\textbf", table)) == 1


def test_what_latex_reads_as_commands_is_escaped() -> None:
    assert escaped(r"50% of a_b & c\d >8×") == r"50\% of a\_b \& c\textbackslash{}d $>$8$\times$"


def test_the_picture_is_the_same_file_every_time(found: dict[str, Any]) -> None:
    first = figure(found, "rope")
    assert first.startswith(b"%PDF")
    assert first == figure(found, "rope")
    assert first != figure(found)


def test_a_newcomer_is_tuned_like_the_others() -> None:
    experiment = with_one_more(read_experiment("study"), "mine.py:Mine", "")
    tries = dict.fromkeys(experiment.encodings, 0)
    for plan in experiment.tasks:
        for word in experiment.of(plan):
            tries[word] += len(plan.tries(word))
    assert tries["mine.py:Mine"] == tries["rope"] == 5
    assert set(tries.values()) == {5}
