"""The answer of an experiment on one screen: rows, what is told apart, and three sentences, by hand."""

from __future__ import annotations

import io
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from scipy.stats import ttest_rel

from lab_results import write
from posenc.lab.commands import answer as screen
from posenc.lab.commands import compare
from posenc.lab.commands.compare import STEPS
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.answer import answer
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.statistics import Paired, holm
from posenc.lab.report.page import as_data
from posenc.lab.run import budget
from posenc.terminal.sparkline import sparkline

Json = dict[str, Any]


def an_arm(name: str, home: list[float], far: list[float] | None, **about: Any) -> Json:
    def cell(scores: list[float]) -> Json:
        seeds = {str(n): score for n, score in enumerate(scores)}
        return {"mean": float(np.mean(scores)), "seeds": seeds, "interval": None, "state": None}

    ends = {"mean": None, "seeds": {}, "interval": None, "state": "cannot: table ends at 32"}
    cells = {"32": cell(home), "512": ends if far is None else cell(far)}
    return {"name": name, "learnt": True, "converged": True, "state": None, "cells": cells, "last_window": None} | about


HOME = [1.0] * 5
ARMS = [
    an_arm("rope", HOME, [0.2, 0.3, 0.25, 0.35, 0.3]),
    an_arm("alibi", HOME, [0.6, 0.7, 0.65, 0.7, 0.6]),
    an_arm("nope", HOME, [0.99, 0.94, 0.95, 0.97, 0.99]),
    an_arm("kerple", HOME, [1.0, 0.96, 0.97, 0.99, 1.0]),
    an_arm("learned", HOME, None),
    an_arm("t5", [0.5] * 5, [0.1] * 5, learnt=False, state="not learnt at this budget"),
]


def made(arms: list[Json], seeds: int = 5) -> Json:
    yarn = an_arm("rope", HOME, [1.0, 0.99, 1.0, 1.0, 0.99])["cells"]
    after = (
        [
            {"change": change, "cells": cells, "last_window": None}
            for change, cells in (("", ARMS[0]["cells"]), ("yarn", yarn))
        ]
        if arms is ARMS
        else []
    )
    task = {
        "name": "passkey", "title": {"en": "Passkey", "zh": "密钥检索"}, "unit": {"en": "words", "zh": "词"},
        "causal": True, "measure": "exact", "length": 32, "lengths": [32, 512], "arms": arms, "after": after, "floor": None,
        "training": {"steps": 500}, "chance": {"32": 0.01, "512": 0.01}, "baseline": None,
    }  # fmt: skip
    found: Json = {"tasks": [task], "seeds": list(range(seeds)), "size": {"n_layers": 2}, "missing": []}
    return found | {"answer": answer(found)}


def test_rows_are_the_ranked_ones_and_the_best_first() -> None:
    rows = answer(made(ARMS))["rows"]
    assert [(row["name"]["en"], row["word"]["en"]) for row in rows] == [
        ("RoPE + YaRN", "stays"), ("KERPLE", "stays"), ("NoPE", "stays"), ("ALiBi", "fades"), ("RoPE", "breaks"),
        ("T5", "not learnt"), ("Learned", "ends"),
    ]  # fmt: skip
    assert [row["ranked"] for row in rows] == [True] * 5 + [False] * 2
    # t(97.5 %, 4) = 2.776, by the tables
    scores = ARMS[1]["cells"]["512"]["seeds"].values()
    half = 2.7764451 * np.std(list(scores), ddof=1) / np.sqrt(5)
    assert rows[3]["interval"] == pytest.approx([0.65 - half, 0.65 + half], abs=1e-6)


def test_sentences_say_what_is_told_apart_and_what_not() -> None:
    said = answer(made(ARMS))
    behind = np.array([0.8, 0.69, 0.75, 0.65, 0.69])
    half = 2.7764451 * np.std(behind, ddof=1) / np.sqrt(5)
    assert said["can"]["en"] == (
        "This can tell: at 16× the trained length, RoPE + YaRN (99.6% right) is ahead of ALiBi, RoPE; "
        f"of RoPE by {100 * behind.mean():.0f} ± {100 * half:.0f} points (95 % interval; paired by seed, Holm's "
        "correction for 10 pairs)."
    )
    assert said["cannot"]["en"] == (
        "This cannot tell RoPE + YaRN from KERPLE, NoPE, nor other tasks or larger models: this is one task (Passkey), in "
        "models of 2 layers."
    )
    assert "posenc compare --text" in said["next"]["en"]


def test_training_that_was_too_short_ranks_nothing_and_asks_for_more() -> None:
    short = [arm | {"converged": False} for arm in ARMS]
    found = made(short)
    said = answer(found)
    assert {row["word"]["en"] for row in said["rows"]} == {"unfinished", "not learnt", "ends"}
    assert said["can"]["en"] == "This can tell no two encodings apart at 16× the trained length."
    assert said["next"]["en"] == "Next: longer training; 500 steps were too few."
    waiting = [{"task": "passkey", "arm": "rope", "seed": 1, "why": "not run"}]
    assert answer({**found, "missing": waiting})["next"]["en"] == "Next: the same command again; 1 trial did not run."
    for arm in found["tasks"][0]["arms"]:
        arm |= {"learnt": False, "state": "failed: OSError (1 of 1 seeds)"}
    assert answer(found)["next"]["en"] == "Next: read why no encoding has a score."


def test_two_seeds_tell_nothing_apart() -> None:
    few = [an_arm("rope", HOME[:2], [0.2, 0.3]), an_arm("alibi", HOME[:2], [0.9, 0.94])]
    assert answer(made(few, seeds=2))["can"]["en"].startswith("This can tell no two encodings apart")


# Statistics -----------------------------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    """Holm 1979: times 4, 3, 2, 1 in ascending order, never less than the one before, at most 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    """A hypothesis is rejected if Bonferroni rejects every set of hypotheses that holds it."""
    each = range(len(p_values))
    sets = [of for size in each for of in combinations(each, size + 1)]
    worst = [max(min(1.0, len(of) * min(p_values[n] for n in of)) for of in sets if one in of) for one in each]
    assert holm(p_values) == pytest.approx(worst)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=8))
def test_paired_p_is_scipys(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    differences = [a - b for a, b in pairs]
    if np.std(differences, ddof=1) < 1e-6:
        return
    assert Paired(differences).p == pytest.approx(ttest_rel(ours, theirs).pvalue, rel=1e-6, abs=1e-9)


def test_equal_differences_are_sure_and_none_is_no_difference() -> None:
    assert Paired([0.5, 0.5, 0.5]).p == Paired([0.5, 0.5, 0.5], [0.5, 0.5]).p == 0.0
    assert Paired([0.0, 0.0, 0.0]).p == 1.0
    assert Paired([0.5]).p == 1.0


# Where it is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_end_fits_one_screen(language: Any) -> None:
    """24 lines of 80 columns, with the last line of progress and the line that names the page."""
    more = [an_arm(name, HOME, [0.9, 0.8, 0.9, 0.85, 0.9]) for name in ("fire", "cope", "shaw", "xpos", "fox")]
    for found in (made(ARMS), made([*ARMS, *more, an_arm("rope+randomized", HOME, HOME)])):
        out = io.StringIO()
        screen.show(found, Console(file=out, width=80, highlight=False), language)
        lines = out.getvalue().rstrip("\n").split("\n")
        assert len(lines) <= 24 - 2
        assert max(map(cell_len, lines)) <= 80
        for sentence in ("can", "cannot", "next"):
            said = "".join(found["answer"][sentence][language].split())
            assert said in "".join("".join(lines).split())


def test_a_sparkline_has_a_block_for_every_length() -> None:
    assert sparkline([1.0, 0.5, 0.0, None], 0.0, 1.0) == "█▅▁·"
    assert sparkline([2.0, 2.0], 2.0, 2.0) == "▁▁"


def test_the_page_opens_with_the_chart_then_the_table_then_three_sentences(tmp_path: Path) -> None:
    found = findings(write(tmp_path))
    answer, said = as_data(found)["sections"][:2]
    assert (answer["name"], said["name"]) == ("answer", "said")
    (opened,) = (block for block in answer["blocks"] if block["is"] == "article")
    assert [block["is"] for block in opened["blocks"]] == ["picture", "table", "text", "text", "text"]
    assert [block["words"] for block in opened["blocks"][2:]] == [
        found["answer"][name] for name in ("can", "cannot", "next")
    ]
    assert said["blocks"][-1]["is"] == "items"


# What is compared -----------------------------------------------------------------------------------------------------


def test_the_default_is_a_task_that_converges_and_a_text_keeps_the_language_model() -> None:
    preset, text = read_experiment("compare"), read_experiment("compare_text")
    assert [plan.task.name for plan in preset.tasks] == ["passkey"]
    assert (preset.budget, preset.seeds, len(preset.encodings)) == (None, 5, 7)
    assert preset.tasks[0].training.steps == preset.tasks[0].enough_steps
    assert [plan.task.name for plan in text.tasks] == ["language_model"]
    assert compare.chosen(preset, None, 0, None, None) == preset
    assert compare.chosen(text, None, 0, None, None) == text
    within = compare.chosen(preset, "alibi,nope", 3, 60.0, None)
    assert (within.budget, within.tasks[0].training.steps, within.first_seed) == (60.0, STEPS, 3)
    assert within.tasks[0].after == ()
    assert compare.chosen(preset, None, 0, None, 7).tasks[0].training.steps == 7


def test_a_budget_that_is_too_short_names_one_that_is_enough() -> None:
    """800 steps of 35 trials at .02 s on two workers: 280 s, 1 s of scoring each: 297.5 s. 1.1 times that: 6 minutes."""
    experiment = compare.chosen(read_experiment("compare"), None, 0, 60.0, None)
    speeds = {budget.kind_of(trial): budget.Speed(0.02, 0.0, 1.0) for trial in experiment.trials()}
    line = budget.too_short(
        budget.multiplied(experiment, 12), lambda one: budget.MARGIN * budget.time_of(one.trials(), speeds, 2)
    )
    assert line is not None
    assert "passkey 120 of 800 steps" in line
    assert re.search(r"--budget 6m is enough$", line)
    assert budget.too_short(budget.multiplied(experiment, 80), lambda trials: 0.0) is None
