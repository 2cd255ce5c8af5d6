"""What is found in folders whose numbers are made up, so that the right answer is known."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab_results import TASKS, Asked, write
from posenc.lab.engines import LATE
from posenc.lab.findings import property_sentences, statistics
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.comparing import best
from posenc.lab.findings.criteria import CONVERGED, MARGIN, NOT_LEARNT
from posenc.lab.findings.sentences import sentences
from posenc.lab.findings.statistics import Paired
from posenc.lab.records.record import NON_OVERLAPPING, RANDOM_POSITIONS
from posenc.lab.report.charts import levels
from posenc.lab.report.markdown import markdown
from posenc.lab.report.provenance import limits
from posenc.lab.report.summary_table import introduction
from posenc.support.languages import LANGUAGES

HOME = {"nope": 2.8, "sinusoidal": 2.6, "learned": 2.6, "rope": 2.3, "alibi": 2.4, "t5": 2.5}
PER_DOUBLING = {"nope": 0.1, "sinusoidal": 0.6, "rope": 0.4, "alibi": 0.01, "t5": 0.1}
KEYS = ["format", "name", "about", "seeds", "fewest_seeds", "exploratory", "posenc", "provenance", "machine", "text",
        "answer", "command", "trials", "size", "tasks", "properties", "context", "cost", "missing", "needs",
        "summary"]  # fmt: skip


def plain(asked: Asked) -> float:
    """Bits that differ by encoding, length and seed alone; everything exact is right."""
    if TASKS[asked.task]["measure"] == "exact":
        return 1.0
    return HOME[asked.encoding] + PER_DOUBLING.get(asked.encoding, 0.0) * math.log2(asked.times) + 0.01 * asked.seed


def but(change: Callable[[Asked], float | None]) -> Callable[[Asked], float]:
    """`plain`, but for what `change` says otherwise."""
    return lambda asked: plain(asked) if (said := change(asked)) is None else said


def flipped(asked: Asked) -> float:
    """ALiBi and RoPE change places."""
    return plain(asked._replace(encoding={"rope": "alibi", "alibi": "rope"}.get(asked.encoding, asked.encoding)))


def copied(**right: int) -> Callable[[Asked], float]:
    """So many of the examples are right beyond the trained length."""
    return lambda asked: float(asked.times <= 1 or asked.item < right[asked.encoding])


def found_in(folder: Path, **how: Any) -> dict[str, Any]:
    found = findings(write(folder, **{"items": 4, "value": plain, "looks": False, "tasks": ["language_model"], **how}))
    json.dumps(found, allow_nan=False)
    return found


@pytest.fixture(scope="module")
def plain_json(tmp_path_factory: pytest.TempPathFactory) -> str:
    return json.dumps(found_in(tmp_path_factory.mktemp("plain")))


@pytest.fixture
def plain_found(plain_json: str) -> dict[str, Any]:
    """Everything as `plain` has it; a test's own."""
    found: dict[str, Any] = json.loads(plain_json)
    return found


def arms_of(found: dict[str, Any], task: int = 0) -> dict[str, Any]:
    return {arm["name"]: arm for arm in found["tasks"][task]["arms"]}


# What is there ------------------------------------------------------------------------------------------------------


def test_everything_is_there_and_is_plain_json(tmp_path: Path) -> None:
    found = findings(write(tmp_path, oracle=True))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert sorted(found) == sorted(KEYS)
    assert found["trials"] == {"expected": 5 * 6 * 3 * 2, "found": 180, "failed": 0}
    assert [task["name"] for task in found["tasks"]] == list(TASKS)
    text = found["tasks"][0]
    assert {arm["name"]: len(arm["oracle"]) for arm in text["arms"]} == dict.fromkeys(HOME, 5)
    assert text["arms"][2]["oracle"]["512"]["mean"] is not None  # a learned table that was trained so far
    assert [after["change"] for after in text["after"]] == ["", "interpolation", "ntk", "yarn"]
    assert {row["step"] for row in text["attention"]} == {0, 250, 500}
    assert {row["seed"] for row in text["attention"]} == {0}
    assert len(text["similarity"]["matrices"]) == 3
    assert text["similarity"]["matrices"][-1][1][2] == pytest.approx(math.exp(-0.5))
    assert {row["link"] for row in found["tasks"][4]["links"]} == {"无聊→电影", "精彩→演员表演", "精彩→电影"}
    assert 8 <= len(found["summary"]) <= 18
    assert found["exploratory"]


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results of posenc lab"):
        findings(tmp_path)


def test_means_are_of_tokens_and_then_of_seeds(tmp_path: Path) -> None:
    """Weights are 32, 33, 34, 32 of items at 1, 2, 3, 4 bits, a seed adds 1: (32 + 66 + 102 + 128) / 131, and 1 more."""
    found = found_in(tmp_path, encodings=["rope"], value=lambda asked: 1.0 + asked.item + asked.seed)
    cell = arms_of(found)["rope"]["cells"]["64"]
    assert cell["seeds"] == pytest.approx({str(seed): 328 / 131 + seed for seed in range(3)}, rel=1e-7)
    assert cell["mean"] == pytest.approx(328 / 131 + 1, rel=1e-7)
    assert cell["interval"] is None  # three seeds


def test_exact_match_counts_examples_whatever_their_length(tmp_path: Path) -> None:
    """3 of 4 right in every one of two seeds: 6 of 8, whose Wilson interval is (.4093, .9285)."""
    found = found_in(tmp_path, tasks=["copy"], encodings=["rope"], seeds=2, value=lambda asked: float(asked.item != 2))
    cell = arms_of(found)["rope"]["cells"]["16"]
    assert cell["mean"] == 0.75
    assert cell["interval"] == pytest.approx([0.4093, 0.9285], abs=5e-5)
    assert not arms_of(found)["rope"]["learnt"]


def test_the_two_ways_to_score_stay_apart(tmp_path: Path) -> None:
    found = found_in(tmp_path, encodings=["alibi"], value=but(lambda asked: 1.5 if asked.mode == NON_OVERLAPPING else None))
    arm = arms_of(found)["alibi"]
    assert arm["non_overlapping"]["512"]["mean"] == 1.5
    assert arm["cells"]["512"]["mean"] == pytest.approx(2.44)


# The gate -----------------------------------------------------------------------------------------------------------


def nearly(bits: float) -> Callable[[Asked], float]:
    """T5 has so many bits at every length, 0.01 more in every seed."""
    return but(lambda asked: bits + 0.01 * asked.seed if asked.encoding == "t5" else None)


def test_what_was_not_learnt_is_shown_and_not_ranked(tmp_path: Path) -> None:
    """3.9 bits need no context; the mean over three seeds is 0.01 above the first."""
    found = found_in(tmp_path, value=nearly(3.9 - MARGIN))
    text, arms = found["tasks"][0], arms_of(found)
    assert text["gate"]["best"] == "rope"
    assert text["gate"]["limit"] == pytest.approx(3.9 - MARGIN)
    for name in ("nope", "sinusoidal", "learned", "rope", "alibi"):
        assert arms[name]["learnt"], name
    t5 = arms["t5"]
    assert not t5["learnt"]
    assert t5["state"] == NOT_LEARNT
    for length in ("64", "96", "128", "256", "512"):
        assert t5["cells"][length]["mean"] == pytest.approx(3.51)
    for name in ("factor", "area", "rank", "behaviour"):
        assert t5[name] is None
    assert t5["rise"] == {}


def test_just_within_the_gate_is_learnt(tmp_path: Path) -> None:
    found = found_in(tmp_path, value=nearly(3.9 - MARGIN - 0.02))
    assert arms_of(found)["t5"]["learnt"]


def test_the_gate_does_not_depend_on_the_best(tmp_path: Path) -> None:
    """RoPE is 1.5 bits better than T5, which is as far below the baseline as before."""
    far = but(lambda asked: {"t5": 3.4, "rope": 1.9}.get(asked.encoding))
    assert all(arm["learnt"] for arm in arms_of(found_in(tmp_path, value=far)).values())


def test_nobody_learnt_who_is_no_better_than_without_context(tmp_path: Path) -> None:
    """All close together, all above the 3.9 bits that need no context."""
    found = found_in(tmp_path, value=lambda asked: 4.0 + 0.01 * asked.seed)
    assert not any(arm["learnt"] for arm in arms_of(found).values())
    assert found["tasks"][0]["gate"]["limit"] == pytest.approx(3.9 - MARGIN)
    assert "3.90" in found["tasks"][0]["gate"]["rule"]["zh"]


def test_the_interval_of_exact_match_knows_that_seeds_differ(tmp_path: Path) -> None:
    """Beyond the trained length all examples of three seeds are right and none of two: over the rows alone, 12 of 20."""

    def value(asked: Asked) -> float:
        return float(asked.times <= 1 or asked.seed > 1)

    found = found_in(tmp_path, tasks=["copy"], encodings=["rope"], seeds=5, value=value)
    cells = arms_of(found)["rope"]["cells"]
    low, high = cells["64"]["interval"]
    assert cells["64"]["mean"] == pytest.approx(0.6)
    assert low < 0.25  # Wilson of 12 of 20: .387
    assert high > 0.9  # .781
    assert cells["16"]["interval"][0] == pytest.approx(1 - 3.8415 / (20 + 3.8415), abs=1e-3)  # all right: that of the rows


def test_exact_tasks_are_learnt_from_95_of_a_hundred(tmp_path: Path) -> None:
    """19 of 20 right is enough, 18 is not; the mean over seeds decides."""

    def value(asked: Asked) -> float:
        wrong = {"rope": 1, "alibi": 2, "t5": (0, 2, 1)[asked.seed]}[asked.encoding]
        return float(asked.item >= wrong)

    arms = arms_of(found_in(tmp_path, tasks=["copy"], encodings=["rope", "alibi", "t5"], items=20, value=value))
    assert {name: arm["learnt"] for name, arm in arms.items()} == {"rope": True, "alibi": False, "t5": True}
    assert arms["alibi"]["cells"]["8"]["mean"] == 0.9  # below the trained length nothing is extrapolated
    assert arms["alibi"]["state"] == NOT_LEARNT
    assert arms["alibi"]["cells"]["32"]["mean"] == 0.9  # every number is shown


# Beyond the trained length ------------------------------------------------------------------------------------------


def test_rises_factors_areas_and_behaviour_by_hand(plain_found: dict[str, Any]) -> None:
    arms = arms_of(plain_found)
    assert arms["rope"]["rise"]["128"]["mean"] == pytest.approx(0.4)
    assert arms["rope"]["rise"]["512"]["seeds"] == pytest.approx({"0": 1.2, "1": 1.2, "2": 1.2})
    assert arms["rope"]["rise"]["512"]["interval"] is None
    assert {name: arm["behaviour"] for name, arm in arms.items()} == {
        "nope": "fades", "sinusoidal": "breaks", "learned": None, "rope": "breaks", "alibi": "flat", "t5": "fades",
    }  # fmt: skip
    assert arms["alibi"]["factor"] == {"value": 8.0, "low": 8.0, "high": 8.0, "censored": True}
    assert arms["rope"]["factor"] == {"value": 1.0, "low": 1.0, "high": 1.0, "censored": False}
    assert arms["rope"]["area"] == pytest.approx(2.31 + 0.4 * 1.5)  # a straight line over three doublings
    assert {name: arm["rank"] for name, arm in arms.items()} == {
        "alibi": 1.0, "t5": 2.25, "nope": 3.5, "rope": 3.25, "sinusoidal": 5.0, "learned": None,
    }  # fmt: skip


def test_a_factor_of_few_seeds_spans_its_seeds(tmp_path: Path) -> None:
    """Seed 0 keeps to 8×, seed 1 to 1×, and their mean, 0.04 bits up, to 8×."""

    def value(asked: Asked) -> float | None:
        return 2.4 + (0.08 * asked.seed if asked.times > 1 else 0.0)

    arm = arms_of(found_in(tmp_path, encodings=["alibi"], seeds=2, value=value))["alibi"]
    assert arm["factor"] == {"value": 8.0, "low": 1.0, "high": 8.0, "censored": True}


def test_what_is_lost_in_exact_match_is_a_share_of_the_examples(tmp_path: Path) -> None:
    """20 of 20 at 16; 18, 17 and 9 beyond."""
    right = {8: 20, 16: 20, 24: 18, 32: 17, 64: 9}
    found = found_in(
        tmp_path, tasks=["copy"], encodings=["rope"], items=20, value=lambda asked: float(asked.item < right[asked.length])
    )
    arm = arms_of(found)["rope"]
    assert {length: rise["mean"] for length, rise in arm["rise"].items()} == pytest.approx(
        {"24": 0.1, "32": 0.15, "64": 0.55}
    )
    assert arm["factor"]["value"] == 1.5
    assert arm["behaviour"] == "breaks"
    assert arm["by_position"] is None


def test_a_learned_table_ends(plain_found: dict[str, Any]) -> None:
    arm = arms_of(plain_found)["learned"]
    assert arm["learnt"]
    assert arm["state"] is None
    assert {length: cell["state"] for length, cell in arm["cells"].items()} == {
        "64": None, **dict.fromkeys(["96", "128", "256", "512"], "cannot: table ends at 64"),
    }  # fmt: skip
    assert arm["factor"] == {"value": 1.0, "low": 1.0, "high": 1.0, "censored": False}
    assert (arm["area"], arm["rank"], arm["behaviour"], arm["rise"]) == (None, None, None, {})


def test_one_length_is_no_extrapolation(tmp_path: Path) -> None:
    for arm in arms_of(found_in(tmp_path, tasks=["word_order"])).values():
        assert (arm["factor"], arm["rank"], arm["behaviour"], arm["rise"]) == (None, None, None, {})


def test_five_seeds_have_intervals_and_four_have_not(tmp_path: Path) -> None:
    """Seeds differ by 0.5 bits at every length alike: the mean is unsure, what is lost is not."""

    def value(asked: Asked) -> float:
        return plain(asked) + 0.5 * asked.seed

    encodings = ["rope", "alibi"]
    left = arms_of(found_in(tmp_path / "four", seeds=4, encodings=encodings, value=value))["rope"]
    assert left["cells"]["64"]["interval"] is None
    found = found_in(tmp_path / "five", seeds=5, encodings=encodings, value=value)
    assert not found["exploratory"]
    arm = arms_of(found)["rope"]
    low, high = arm["cells"]["512"]["interval"]
    assert low + 0.5 < arm["cells"]["512"]["mean"] < high - 0.5
    assert arm["rise"]["512"]["interval"] == pytest.approx([1.2, 1.2], abs=1e-6)
    assert arm["factor"] == {"value": 1.0, "low": 1.0, "high": 1.0, "censored": False}
    left_out = {("language_model", "rope", 3)}
    unequal = found_in(tmp_path / "unequal", seeds=5, encodings=encodings, value=value, left_out=left_out)
    assert arms_of(unequal)["rope"]["cells"]["512"]["interval"] is None
    assert arms_of(unequal)["alibi"]["cells"]["512"]["interval"] is not None


def test_an_exact_rise_has_its_interval_the_right_way_round(tmp_path: Path) -> None:
    """All right at 16, three of four beyond: a quarter is lost, between nothing and everything."""
    found = found_in(
        tmp_path, tasks=["copy"], encodings=["rope"], seeds=5, items=20,
        value=lambda asked: float(asked.times <= 1 or asked.item % 4 > 0),
    )  # fmt: skip
    rise = arms_of(found)["rope"]["rise"]["32"]
    assert rise["mean"] == 0.25
    assert 0 < rise["interval"][0] < 0.25 < rise["interval"][1] < 0.6


# What is missing ----------------------------------------------------------------------------------------------------


def test_a_seed_that_was_not_run_is_missing_and_the_others_stand(tmp_path: Path) -> None:
    found = found_in(tmp_path, left_out={("language_model", "rope", 1)})
    assert found["missing"] == [{"task": "language_model", "arm": "rope", "seed": 1, "why": "not run"}]
    assert found["trials"] == {"expected": 18, "found": 17, "failed": 0}
    arm = arms_of(found)["rope"]
    assert set(arm["cells"]["128"]["seeds"]) == set(arm["rise"]["128"]["seeds"]) == {"0", "2"}
    assert arm["cells"]["128"]["mean"] == pytest.approx(2.71)
    assert arm["state"] is None


def test_ranks_leave_out_cells_that_are_not_complete(tmp_path: Path) -> None:
    """In seed 1 RoPE would be better than ALiBi, but there T5 is missing, which has three seeds of four."""
    value = but(lambda asked: 2.0 if (asked.encoding, asked.seed) == ("rope", 1) and asked.times > 1 else None)
    encodings, gone = ["rope", "alibi", "t5"], {("language_model", "t5", 1)}
    with_all = arms_of(found_in(tmp_path / "all", encodings=encodings, value=value, seeds=4))
    without = arms_of(found_in(tmp_path / "some", encodings=encodings, value=value, seeds=4, left_out=gone))
    plainly = arms_of(found_in(tmp_path / "plain", encodings=encodings, seeds=4))
    assert {name: arm["rank"] for name, arm in without.items()} == {name: arm["rank"] for name, arm in plainly.items()}
    assert with_all["rope"]["rank"] < without["rope"]["rank"]
    gone |= {("language_model", "t5", 2)}
    two = found_in(tmp_path / "two", encodings=encodings, value=value, seeds=4, left_out=gone)
    assert arms_of(two)["t5"]["rank"] is None  # two seeds of it do not take two seeds from the others
    assert two["tasks"][0]["rank_seeds"] == [0, 1, 2, 3]


def test_an_arm_that_was_not_run_at_all(tmp_path: Path) -> None:
    found = found_in(tmp_path, left_out={("language_model", "rope", seed) for seed in range(3)})
    arm = arms_of(found)["rope"]
    assert arm["state"] == "missing"
    assert not arm["learnt"]
    assert all(cell["state"] == "missing" and cell["mean"] is None for cell in arm["cells"].values())
    assert found["tasks"][0]["gate"]["best"] == "alibi"


def test_a_failed_seed_fails_the_arm_and_is_not_averaged_away(tmp_path: Path) -> None:
    found = found_in(tmp_path, failed={("language_model", "rope", 2): "the loss was no number at step 7"})
    arm = arms_of(found)["rope"]
    assert arm["state"] == "failed: the loss was no number at step 7 (1 of 3 seeds)"
    assert not arm["learnt"]
    cell = arm["cells"]["64"]
    assert (cell["mean"], cell["state"]) == (None, "failed: the loss was no number at step 7")
    assert set(cell["seeds"]) == {"0", "1"}  # still shown
    assert found["missing"] == [
        {"task": "language_model", "arm": "rope", "seed": 2, "why": "failed: the loss was no number at step 7"}
    ]
    assert found["trials"]["failed"] == 1
    assert found["tasks"][0]["gate"]["best"] == "alibi"


def test_a_crash_says_why_it_left_no_record(tmp_path: Path) -> None:
    found = found_in(tmp_path, tasks=["language_model", "copy"], crashed={("copy", "t5", 0): "OSError: no space left"})
    assert found["missing"] == [{"task": "copy", "arm": "t5", "seed": 0, "why": "failed: OSError: no space left"}]


def test_what_works_causally_only_says_so(tmp_path: Path) -> None:
    found = found_in(tmp_path, tasks=["masked_language_model"], causal_only={("masked_language_model", "t5")})
    arm = arms_of(found)["t5"]
    assert arm["state"] == "cannot: causal only"
    assert all(cell["state"] == "cannot: causal only" for cell in arm["cells"].values())
    assert not arm["learnt"]
    assert found["missing"] == []


def test_a_score_that_is_no_number_is_a_failure(tmp_path: Path) -> None:
    value = but(lambda asked: math.nan if (asked.encoding, asked.length, asked.item) == ("rope", 256, 1) else None)
    arm = arms_of(found_in(tmp_path, value=value))["rope"]
    assert arm["cells"]["256"]["state"] == "failed: the score was no number"
    assert arm["factor"] == {"value": 1.0, "low": 1.0, "high": 1.0, "censored": False}
    assert (arm["area"], arm["rank"], arm["behaviour"]) == (None, None, None)
    assert arm["rise"]["512"]["mean"] == pytest.approx(1.2)


def test_one_seed(tmp_path: Path) -> None:
    found = found_in(tmp_path, seeds=1, tasks=["language_model", "copy"])
    arm = arms_of(found)["alibi"]
    assert arm["factor"] == {"value": 8.0, "low": 8.0, "high": 8.0, "censored": True}
    assert "1 seed," in found["summary"][-1]["en"]


def test_no_trial_at_all(tmp_path: Path) -> None:
    everything = {("language_model", word, seed) for word in HOME for seed in range(3)}
    found = found_in(tmp_path, left_out=everything, cost=False)
    assert found["trials"] == {"expected": 18, "found": 0, "failed": 0}
    assert len(found["missing"]) == 18
    assert found["cost"] is None


def test_results_of_another_sweep_in_the_folder_do_not_count(tmp_path: Path) -> None:
    """A seed more, finished by an earlier sweep of more seeds."""
    write(tmp_path, tasks=["language_model"], seeds=4, items=4, value=lambda asked: 2.0 + asked.seed)
    found = found_in(tmp_path, seeds=3, value=lambda asked: 2.0 + asked.seed)
    assert set(arms_of(found)["rope"]["cells"]["64"]["seeds"]) == {"0", "1", "2"}


# Changes after training ---------------------------------------------------------------------------------------------


def test_changes_are_cells_of_their_own(tmp_path: Path) -> None:
    value = but(lambda asked: 2.2 if asked.change == "yarn" else None)
    text = found_in(tmp_path, value=value, after=("ntk", "yarn"))["tasks"][0]
    cells = {after["change"]: after["cells"] for after in text["after"]}
    assert cells["yarn"]["256"]["mean"] == pytest.approx(2.2)
    assert cells[""]["256"]["mean"] == cells["ntk"]["256"]["mean"] == pytest.approx(3.11)
    assert cells["yarn"]["64"]["mean"] == pytest.approx(2.31)  # nothing is changed up to the trained length
    assert arms_of({"tasks": [text]})["rope"]["cells"]["256"]["mean"] == pytest.approx(3.11)


def test_changes_of_what_was_not_learnt_are_shown(tmp_path: Path) -> None:
    text = found_in(tmp_path, value=but(lambda asked: 5.0 if asked.encoding == "rope" else None))["tasks"][0]
    for after in text["after"]:
        assert after["cells"]["256"]["mean"] == 5.0


def test_what_still_improved_is_marked_and_not_ranked(tmp_path: Path) -> None:
    """RoPE falls by 0.2 bits in the last fifth, along a straight line; the others do not fall."""

    def curve(encoding: str, seed: int) -> list[tuple[int, float]]:
        return [(step, 3.0 - (0.01 * (step - 400) / 5 if encoding == "rope" and step > 400 else 0.0)) for step in (25, 400,
                425, 450, 475, 500)]  # fmt: skip

    found = found_in(tmp_path, curve=curve)
    arms = arms_of(found)
    assert arms["rope"]["slopes"] == pytest.approx(dict.fromkeys("012", 0.2), abs=1e-6)
    assert {name: arm["converged"] for name, arm in arms.items()} == {name: name != "rope" for name in HOME}
    assert {arm["rank"] for arm in arms.values()} == {None}  # the best may still change
    said = said_of(found)
    assert f"by more than {CONVERGED:g} bits" in said
    assert "not ranked: Language model on bytes: RoPE (0.20 bits)." in said
    assert "RoPE is best" not in said  # nor is the second best called the best
    assert "none is called the best" in said
    assert list(needs_of(found)) == ["Not ranked: training was too short"]


def test_an_encoding_behind_that_still_improved_does_not_stop_the_others(tmp_path: Path) -> None:
    found = found_in(
        tmp_path, curve=lambda encoding, seed: [(n, 9.0 - n / 500 * (encoding == "nope")) for n in range(50, 501, 25)]
    )
    assert "at the trained length 64, RoPE is best" in said_of(found)
    assert "Not ranked: training was too short" in needs_of(found)
    ranks = {name: arm["rank"] for name, arm in arms_of(found).items()}
    assert (ranks["nope"], ranks["alibi"]) == (None, 1.0)


def test_dropped_positions_are_no_improvement(tmp_path: Path) -> None:
    """The loss jumps down by a bit at step 438, where positions are dropped, and is flat before and from there on."""
    curve = [(step, 3.0 - (step > 438)) for step in range(13, 501, 13)]
    found = found_in(
        tmp_path, encodings=["rope", "rope+dropped"], curve=lambda encoding, seed: curve, value=lambda asked: 2.0
    )
    arms = arms_of(found)
    assert arms["rope+dropped"]["slopes"] == pytest.approx({"0": 0, "1": 0, "2": 0}, abs=1e-9)
    assert arms["rope+dropped"]["converged"]
    assert arms["rope"]["converged"] is False


def test_staying_as_good_is_told_apart_from_using_far_context(tmp_path: Path) -> None:
    """ALiBi gains 0.02 bits up to 8×; then 0.2."""
    for gain, used in ((0.02, False), (0.2, True)):
        value = but(
            lambda asked, gain=gain: 2.4 - gain * (asked.length == 512) if asked.encoding == "alibi" else None  # type: ignore[misc]
        )
        said = said_of(found_in(tmp_path / str(gain), encodings=["rope", "alibi"], value=value))
        told = "ALiBi gains most from the trained length to 8×: 0.200"
        if not used:
            told = "mean over seeds, no encoding gains more than 0.020"
        assert f"On the same targets, {told} bits" in said
        assert ("these models do not use the added context" in said) is not used


def test_what_has_not_run_is_not_counted(tmp_path: Path) -> None:
    """T5 has not run in any seed, RoPE failed in one; elsewhere everything has run."""
    left_out = {("language_model", "t5", seed) for seed in range(3)}
    said = said_of(found_in(tmp_path / "some", left_out=left_out))
    assert "5 of the 5 encodings that have run learnt this length." in said
    assert "Of 18 trials, 3 did not run; their cells say so." in said
    said = said_of(found_in(tmp_path / "failed", left_out=left_out, failed={("language_model", "rope", 2): "no number"}))
    assert "4 of the 5 encodings that have run" in said
    assert "Of 18 trials, 1 failed and 3 did not run; their cells say so." in said


def test_what_still_improves_is_marked_in_sorted_lists(tmp_path: Path) -> None:
    found = found_in(
        tmp_path, curve=lambda encoding, seed: [(n, 9.0 - n / 500 * (encoding == "nope")) for n in range(50, 501, 25)]
    )
    assert "These get worse slowly: NoPE (+0.30 bits, still improving), T5 (+0.30 bits)." in said_of(found)


def test_the_baseline_is_named_as_it_is(tmp_path: Path) -> None:
    causal, masked = found_in(tmp_path, tasks=["language_model", "masked_language_model"])["tasks"]
    assert "a model that sees only the byte before (3.90 bits)" in causal["gate"]["rule"]["en"]
    assert "只看前一个字节的模型" in causal["gate"]["rule"]["zh"]
    assert "a model that ignores the context (3.90 bits)" in masked["gate"]["rule"]["en"]
    assert [level.name.en for task in (causal, masked) for level in levels(task)[1:]] == [
        "only the byte before", "without context",
    ]  # fmt: skip


def test_random_positions_are_described_as_they_are_drawn(tmp_path: Path) -> None:
    """From twice the longest length, 512, in training and when scored."""
    found = found_in(tmp_path, encodings=["rope", "rope+randomized"], value=lambda asked: 2.0)
    said = next(words for words in limits(found) if words.en.startswith("Random positions"))
    assert "trained and scored at sorted random subsets of 0 … 1023" in said.en
    assert "训练和计分都用 0 … 1023" in said.zh


def test_limitations_count_tokens_not_symbols(tmp_path: Path) -> None:
    """Copy of n symbols is ^ n = n, where the last target, $, is not read."""
    found = found_in(tmp_path, tasks=["copy"], encodings=["learned", "t5"])
    task = found["tasks"][0]
    tokens = 2 * task["length"] + 2
    said = "\n".join(words.en for words in limits(found))
    assert f"as many rows as training can reach, {tokens} ({task['title']['en']})" in said
    assert f"Training on {tokens} tokens ({task['title']['en']}) never uses" in said


def test_close_scores_have_three_decimals(tmp_path: Path) -> None:
    """At 64 both are within 0.05 bits of each other, at 512 they are not."""

    def value(asked: Asked) -> float:
        return 2.3 + (0.004 if asked.length == 64 else 0.3) * (asked.encoding == "alibi")

    table = markdown(found_in(tmp_path, encodings=["rope", "alibi"], value=value), "en")
    assert "| RoPE | 2.300 (2.300 2.300 2.300) |" in table
    assert "| ALiBi | 2.304 | 2.60 | 2.60 | 2.60 | 2.60 |" in table


def test_intervals_say_how_often_they_cover(tmp_path: Path) -> None:
    found = found_in(tmp_path, encodings=["rope", "alibi"], seeds=5)
    assert "covers the true mean in about 84 % of cases" in said_of(found)
    assert "约为 84%" in said_of(found, "zh")


def test_chinese_has_spaces_beside_latin_names(tmp_path: Path) -> None:
    """YaRN is best at 4×; then interpolation, whose Chinese name has no Latin letters."""

    def best_is(change: str) -> dict[str, Any]:
        value = but(lambda asked: 2.0 if asked.change == change else None)
        return found_in(tmp_path / change, encodings=["rope"], value=value)

    found = best_is("yarn")
    page = markdown(found, "zh")
    assert "在训练长度的 4 倍处，YaRN 的平均最好：" in page
    assert "## 训练之后的改动\n" in page
    assert "4 倍处，位置插值的平均最好：" in markdown(best_is("interpolation"), "zh")
    assert "不改动 3." in said_of(found, "zh")
    assert "训练长度上的质量" in page


def test_random_positions_are_scored_at_random_positions(tmp_path: Path) -> None:
    """Made-up numbers: 1 bit better at random positions. The plain ones stand beside."""
    value = but(
        lambda asked: 2.0 if asked.mode == RANDOM_POSITIONS else 3.0 if asked.encoding == "rope+randomized" else None
    )
    found = found_in(tmp_path, encodings=["rope", "rope+randomized"], value=value)
    arm = arms_of(found)["rope+randomized"]
    assert arm["cells"]["512"]["mean"] == 2.0
    assert arm["contiguous"]["512"]["mean"] == 3.0
    assert arms_of(found)["rope"]["contiguous"] is None
    assert arm["by_position"] is None  # which are those of plain positions
    table = markdown(found, "en")
    assert "| RoPE + random positions | 2.00 |" in table
    assert "| RoPE + random positions (0, 1, 2, …) | 3.00 |" in table


def test_the_smallest_difference_that_seeds_can_show() -> None:
    """A paired t-test finds it in 80 % of 200 000 draws, by tables of t with 2 and 4 degrees of freedom."""
    draw = np.random.default_rng(0)
    for differences, beyond in (([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]], 4.302653), ([[-0.2, -0.1, 0.0, 0.1, 0.2]], 2.776445)):
        least, n = statistics.detectable([Paired(each) for each in differences]), len(differences[0])
        drawn = draw.normal(least, np.std(differences[0], ddof=1), (200_000, n))
        found = drawn.mean(1) / drawn.std(1, ddof=1) * math.sqrt(n) > beyond
        assert found.mean() == pytest.approx(0.8, abs=0.004)
    assert statistics.detectable([Paired([0.1])]) is None
    assert statistics.detectable([]) is None


def unequal_seeds(asked: Asked) -> float:
    """RoPE has five seeds and ALiBi three, in each of which RoPE is better; RoPE's mean over five is worse."""
    if asked.encoding == "alibi":
        return 2.3 + 0.1 * asked.seed
    return 2.0 + 0.1 * asked.seed + 1.0 * (asked.seed > 2)


FEWER = {("language_model", "alibi", 3), ("language_model", "alibi", 4)}


def test_unequal_seeds_are_compared_over_those_that_both_have(tmp_path: Path) -> None:
    found = found_in(tmp_path, encodings=["alibi", "rope"], seeds=5, value=unequal_seeds, left_out=FEWER)
    arms = arms_of(found)
    assert arms["rope"]["cells"]["64"]["mean"] > arms["alibi"]["cells"]["64"]["mean"]
    assert [arm["name"] for arm in best(found["tasks"][0], list(arms.values()), 64)] == ["rope"]
    assert "at the trained length 64, RoPE is best" in said_of(found)
    assert needs_of(found)["Text no longer than in training"].startswith("RoPE (")
    assert [arm["rank"] for arm in (arms["rope"], arms["alibi"])] == [1.0, 2.0]
    assert found["tasks"][0]["rank_seeds"] == [0, 1, 2]
    for language in LANGUAGES:
        assert "0, 1, 2" in introduction(found).in_language(language)


def test_one_seed_is_not_called_the_best_among_five(tmp_path: Path) -> None:
    """T5 is best, and has one seed."""
    gone = {("language_model", "t5", seed) for seed in range(1, 5)}
    value = but(lambda asked: {"t5": 1.0, "alibi": 2.0}.get(asked.encoding))
    found = found_in(tmp_path, encodings=["alibi", "rope", "t5"], seeds=5, value=value, left_out=gone)
    assert "at the trained length 64, ALiBi is best" in said_of(found)
    assert needs_of(found)["Text no longer than in training"].startswith("ALiBi (")
    assert arms_of(found)["t5"]["rank"] is None


def test_the_smallest_difference_is_told_apart_by_seeds_in_common(tmp_path: Path) -> None:
    """T5 and RoPE share five seeds; ALiBi shares three with each. Differences by seed: ±0.1 and ±0.2."""

    def value(asked: Asked) -> float:
        return 2.3 + {"rope": 0.0, "t5": 0.1, "alibi": 0.2}[asked.encoding] * (-1) ** asked.seed

    found = found_in(tmp_path, encodings=["alibi", "rope", "t5"], seeds=5, value=value, left_out=FEWER)
    five, three = found["tasks"][0]["detectable"]
    assert (five["seeds"], three["seeds"]) == (5, 3)
    assert five["least"] == pytest.approx(statistics.detectable([Paired([0.1, -0.1, 0.1, -0.1, 0.1])]))
    assert three["least"] == pytest.approx(statistics.detectable([Paired([0.1, -0.1, 0.1]), Paired([0.2, -0.2, 0.2])]))
    said = said_of(found)
    assert (
        f"is {five['least']:.2g} bits for pairs with 5 seeds in common, {three['least']:.2g} bits for pairs with 3" in said
    )
    assert "(paired by seed and row, 5 % level, 80 % power" in said


# The answer ---------------------------------------------------------------------------------------------------------


def needs_of(found: dict[str, Any]) -> dict[str, str]:
    return {one["need"]["en"]: f"{one['pick']['en']} ({one['why']['en']})" for one in found["needs"]}


def said_of(found: dict[str, Any], language: str = "en") -> str:
    return "\n".join(words[language] for words in found["summary"])


def test_the_answer_says_what_was_found(plain_found: dict[str, Any]) -> None:
    said = said_of(plain_found)
    assert "18 models were trained: 6 encodings with 3 seeds each" in said
    best_said = "at the trained length 64, RoPE is best with 2.31 bits, ahead of the next, ALiBi, by 0.10 ± 0.00 bits"
    assert f"{best_said} (95 % interval); chance gives 8.00 bits. 6 of 6 encodings learnt" in said
    assert "these stay as good (at most 0.05 bits worse): ALiBi (+0.03 bits)." in said
    assert "These get worse slowly: NoPE (+0.30 bits), T5 (+0.30 bits)." in said
    assert "These break (0.5 bits worse or more): RoPE (+1.20 bits), Sinusoidal (+1.80 bits)." in said
    assert "These cannot process longer inputs: Learned (table ends at 64)." in said
    assert needs_of(plain_found) == {
        "Text no longer than in training": "RoPE (2.31 bits at 64)",
        "Text 8× as long as in training": "ALiBi (2.44 bits at 512, +0.03 bits from 64)",
        "Least time to train, besides NoPE": "Sinusoidal, Learned (1.01× the time of NoPE)",
        "Least time to read a prompt, besides NoPE": "Sinusoidal, Learned (1.01× the time of NoPE)",
        "No parameters, and the score kept furthest": "ALiBi (score kept up to >8× the trained length)",
    }
    assert "Sinusoidal 1.01×, Learned 1.02×, ALiBi 1.05×, RoPE 1.30×, T5 1.60×" in said
    assert "Not learnt" not in said


def test_a_sweep_in_parts_says_how_far_it_is(plain_found: dict[str, Any]) -> None:
    plain_found["trials"] |= {"found": 7, "expected": 16}
    plain_found |= {"seeds": [0, 1, 2, 3, 4], "fewest_seeds": 3, "exploratory": False}
    for arm in plain_found["tasks"][0]["arms"]:
        for cell in arm["cells"].values():
            cell["seeds"] = {} if arm["name"] == "t5" else dict.fromkeys("0" if arm["name"] == "alibi" else "01234", 1.0)
    said, chinese = ("\n".join(words.in_language(at) for words in sentences(plain_found)) for at in LANGUAGES)
    assert "7 of 16 models have been trained: 5 of 6 encodings with 1 to 5 seeds each" in said
    assert "Encodings with fewer seeds than 5 have none over seeds" in said
    assert "计划 16 个模型，已训练 7 个：6 种编码中的 5 种，每种 1 至 5 个随机种子" in chinese
    assert "不足 5 个种子的编码不给出种子间的区间" in chinese
    assert "Intervals are 95% intervals, over 1 to 5 seeds and over documents" in said
    for arm in plain_found["tasks"][0]["arms"]:
        for cell in arm["cells"].values():
            cell["seeds"] = dict.fromkeys("01234", 1.0)
    told = "\n".join(words.en for words in sentences(plain_found))
    assert "Intervals are 95% intervals, over 5 seeds and over documents" in told
    assert "Encodings with fewer" not in told
    for arm in plain_found["tasks"][0]["arms"]:
        for cell in arm["cells"].values():
            cell["seeds"] = {}
    assert not any("Intervals are" in words.en for words in sentences(plain_found))


def test_the_answer_follows_the_numbers(tmp_path: Path) -> None:
    found = found_in(tmp_path, value=flipped)
    said = said_of(found)
    assert "these stay as good (at most 0.05 bits worse): RoPE (+0.03 bits)." in said
    assert needs_of(found)["Text 8× as long as in training"].startswith("RoPE (")
    worse = said_of(found_in(tmp_path / "t5", value=but(lambda asked: 3.6 if asked.encoding == "t5" else None)))
    assert "not ranked: Language model on bytes: T5 (3.60 bits)." in worse
    nothing = found_in(tmp_path / "none", value=lambda asked: 7.0)
    assert "no encoding learnt the trained length at this budget" in said_of(nothing)
    assert nothing["needs"] == []


def test_names_that_seeds_order_otherwise_stand_together(tmp_path: Path) -> None:
    """T5 beats ALiBi at 512 in one seed."""
    value = but(lambda asked: 2.0 if (asked.encoding, asked.times, asked.seed) == ("t5", 8.0, 1) else None)
    assert needs_of(found_in(tmp_path, value=value))["Text 8× as long as in training"].startswith("ALiBi, T5 (")


def test_the_answer_in_chinese_holds_the_same_numbers(tmp_path: Path) -> None:
    found = findings(write(tmp_path, seeds=2))
    for words in found["summary"]:
        english, chinese = (sorted(re.findall(r"\d+\.\d+", words[language])) for language in ("en", "zh"))
        assert english == chinese, words
        assert not re.search(r"[A-Za-z]{3,} [a-z]{3,} [a-z]{3,}", words["zh"])  # no English left standing


def test_exact_copying_is_recommended_by_numbers(tmp_path: Path) -> None:
    how = {"tasks": ["language_model", "copy"], "items": 20, "cannot": {}}
    right = {"nope": 3, "t5": 18, "alibi": 4, "rope": 6, "sinusoidal": 6, "learned": 0}
    value = but(lambda asked: copied(**right)(asked) if asked.task == "copy" else None)
    found = found_in(tmp_path, value=value, **how)
    assert needs_of(found)["Exact copying at 2× the trained length"].startswith("T5 (")
    assert "Largest factor of the trained length with at least 90% of the exact match kept: Copy: T5 (>4×)." in said_of(
        found
    )


# What was measured exactly ------------------------------------------------------------------------------------------


def test_a_missing_package_is_no_failure_of_the_encoding(tmp_path: Path) -> None:
    """No record, and a reason that begins as Python's own error does."""
    why = {("language_model", "t5", seed): "ModuleNotFoundError: T5 needs a package" for seed in range(3)}
    found = found_in(tmp_path, crashed=why)
    arm = arms_of(found)["t5"]
    assert arm["state"] == "cannot: T5 needs a package"
    assert {cell["state"] for cell in arm["cells"].values()} == {"cannot: T5 needs a package"}
    assert {one["why"] for one in found["missing"]} == {"cannot: T5 needs a package"}
    assert found["tasks"][0]["gate"]["best"] == "rope"


def test_what_a_budget_left_out_did_not_run_and_did_not_fail(tmp_path: Path) -> None:
    found = found_in(tmp_path, crashed={("language_model", "t5", seed): LATE for seed in range(3)})
    assert {row["why"] for row in found["missing"] if row["arm"] == "t5"} == {"not run"}
    (row,) = (row for row in found["answer"]["rows"] if row["arm"] == "t5")
    assert row["word"]["en"] == "not run"
    assert found["answer"]["next"]["en"].startswith("Next: the same command again")


def test_a_crash_says_why_in_every_cell(tmp_path: Path) -> None:
    found = found_in(tmp_path, crashed={("language_model", "t5", seed): "RuntimeError: planted" for seed in range(3)})
    assert arms_of(found)["t5"]["cells"]["64"]["state"] == "failed: RuntimeError: planted"


def exact_row(exchanged: float | None, reordered: float, decode: float = 1e-15) -> dict[str, Any]:
    return {"order": {"bidirectional": exchanged, "causal": 3.0}, "reordered": reordered, "decode": decode}


def exact_sentences(**rows: dict[str, Any]) -> str:
    order = {"bidirectional": 1e-15, "causal": 3.0}
    return " ".join(one.en for one in property_sentences.sentences({"properties": {"order_without": order, "rows": rows}}))


def test_a_reversal_is_missed_by_symmetric_biases_only() -> None:
    said = exact_sentences(alibi=exact_row(1e-15, 0.48), rope=exact_row(0.8, 1.0), cope=exact_row(None, 1.0))
    assert "They do see other re-orderings (difference): ALiBi (0.48)." in said
    assert "reversals" not in exact_sentences(rope=exact_row(0.8, 1.0))


def test_decoding_that_differs_is_named() -> None:
    assert "largest difference 1e-15" in exact_sentences(rope=exact_row(0.8, 1.0))
    said = exact_sentences(rope=exact_row(0.8, 1.0, decode=0.5), alibi={"failed": "failed: RuntimeError: planted"})
    assert "differs from computing all tokens at once for: RoPE (0.50)." in said


# Corrected, marked, counted -----------------------------------------------------------------------------------------


def test_many_pairs_are_corrected(tmp_path: Path) -> None:
    """ALiBi is ahead of RoPE by 0.1, 0.12 and 0.14 in three seeds: t = 10.4, p = 0.0091 alone, and 0.137 times the 15 pairs
    of six encodings. Of two encodings there is one pair.
    """

    def value(asked: Asked) -> float:
        return {"alibi": 2.0, "rope": 2.1 + 0.02 * asked.seed}.get(asked.encoding, 2.2 + 0.3 * math.sin(9.1 * asked.seed))

    alone = found_in(tmp_path / "two", encodings=["alibi", "rope"], value=value)
    assert "ALiBi is best with 2.00 bits, ahead of the next, RoPE, by 0.12 ± 0.05 bits (95 % interval)" in said_of(alone)
    said = said_of(found_in(tmp_path / "six", value=value))
    assert "ALiBi has the best mean, 2.00 bits. It is undecided against RoPE" in said
    assert "Holm's correction over all pairs" in said


def test_what_belongs_to_an_encoding_is_said_where_models_differ(plain_found: dict[str, Any]) -> None:
    assert "The models differ by the encoding only. All have 2 layers, d_model 128 and 4 heads." in said_of(plain_found)
    task = plain_found["tasks"][0]
    arms_of(plain_found)["t5"]["learning_rate"] *= 4
    arms_of(plain_found)["alibi"]["options"] = {"bias_max": 5.0}
    task["settings"] = {"rope": {"base": 500}}
    plain_found["size"] |= {"n_layers": 1, "n_heads": 1}
    said = sentences(plain_found)[0].en
    usual = task["training"]["learning_rate"]
    assert f"by what belongs to it (learning rate {4 * usual:g} of T5, {usual:g} of the others" in said
    assert "RoPE with base 500; ALiBi with bias_max 5)" in said
    assert "All have 1 layer, d_model 128 and 1 head." in said


TWICE = """
import json, os, random, sys
from pathlib import Path
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.queries import Results
from posenc.lab.records.results import Folder

folder, listed = Path(sys.argv[1]), os.listdir
os.listdir = lambda path=".": random.Random(int(os.environ["PYTHONHASHSEED"])).sample(names := listed(path), len(names))
for _ in range(3):
    with Folder(folder).connect() as database:
        items = Results(database).items("recall", "exact")
    print({name: column.tolist() for name, column in items.items()})
print(json.dumps(findings(folder)))
"""


def test_the_findings_of_a_folder_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """Whatever threads add first, whatever the order of files and of hashes, and wherever the folder is."""

    def fraction(asked: Asked) -> float:
        return 0.5 + 0.5 * math.sin(12.9898 * asked.item + 78.233 * asked.seed + asked.length)

    folder = write(
        tmp_path / "results", tasks=("recall",), encodings=("nope", "rope"), seeds=5, items=300, value=fraction, cost=False
    )
    shutil.copytree(folder, tmp_path / "a" / "copy")
    here = {**os.environ, "PYTHONHASHSEED": "2"}
    command = [sys.executable, "-c", TWICE, tmp_path / "a" / "copy"]
    done = subprocess.run(command, env=here, capture_output=True, encoding="utf-8", check=True)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", ["", str(folder)])
        patch.setenv("PYTHONHASHSEED", "1")  # the order of files; the hashes of this process are its own
        patch.setattr(os, "listdir", os.listdir)
        exec(TWICE, {})
    said = [text.splitlines() for text in (printed.getvalue(), done.stdout)]
    assert len({*said[0][:3], *said[1][:3]}) == 1
    assert said[0][3] == said[1][3]
