"""The gate: what was not learnt has no number beyond the trained length, and never a zero or a blank."""

from __future__ import annotations

import json
from typing import Any

import pytest

from posenc.lab import verdict
from posenc.lab.experiment.recipe import Recipe
from posenc.lab.summary import needs, sentences

RECIPE = Recipe()
EXACT = {
    "order": {"bidirectional": 1.0, "causal": 3.0}, "reordered": 1.0, "shift": 0.0, "decode": 1e-15, "parameters": 0,
    "table_bytes_per_token": 0.0, "largest_position": None, "from_zero": False, "sites": ["BIAS"],
}  # fmt: skip
ONE = {"median": 1.0, "low": 0.9, "high": 1.1}


def trial(*bits: float | None, cannot: str | None = None) -> dict[str, Any]:
    by_length = dict(zip(("64", "128", "256", "512"), bits, strict=True))
    scored = {"bits": by_length, "by_position": [2.0] * 16, "cannot": cannot}
    result = {"parameters": 0, "failed": None, "curve": [], **scored}
    return {"result": result, "seconds": {"training": 1.0, "scoring": 1.0}}


def compared(trials: dict[str, Any], pairs: float = 3.5, failures: dict[str, str] | None = None, **exact: Any) -> Any:
    names = list(dict.fromkeys(key.split()[0] for key in trials)) + list(failures or {})
    return verdict.results(
        request={"encodings": names, "budget": 300.0, "steps": None, "seeds": [0, 1], "code": "c" * 64},
        text={"source": "t", "sha256": "0", "train": {"bytes": 1}, "held_out": {"bytes": 1}, "notes": []}, pairs=pairs,
        recipe=RECIPE, steps=100,
        exact={name: {**EXACT, **exact.get(name, {})} for name in names if name not in (failures or {})},
        order_without={"bidirectional": 1e-15, "causal": 3.0},
        cost={"rounds": 5, "sizes": {"d_model": 1, "n_heads": 1, "prompt": 1}, "nope_seconds": {},
              "ratios": {name: dict.fromkeys(("prefill", "decode", "training"), ONE) for name in names}},
        trials=trials, failures=failures or {}, version="0",
        machine={"system": "Linux", "processor": "x", "cores": 2, "vector_instructions": "AVX"},
    )  # fmt: skip


def rows(done: Any) -> dict[str, Any]:
    return {row["name"]: row for row in done["rows"]}


def test_the_gate_is_the_best_plus_its_margin() -> None:
    done = compared({
        "alibi 0": trial(2.0, 2.0, 2.0, 2.0), "alibi 1": trial(2.2, 2.2, 2.2, 2.2),
        "rope 0": trial(2.7, 3, 4, 5), "rope 1": trial(2.69, 3, 4, 5),  # mean 2.695, bar 2.7
        "nope 0": trial(2.0, 2.0, 2.0, 2.0), "nope 1": trial(3.42, 3.0, 3.0, 3.0),  # mean 2.71: one good seed is not enough
    })  # fmt: skip
    found = rows(done)
    assert done["gate"]["best"] == "alibi"
    assert done["gate"]["limit"] == pytest.approx(2.7)
    assert [found[name]["learnt"] for name in ("alibi", "rope", "nope")] == [True, True, False]
    assert found["nope"]["bits"]["64"]["mean"] == pytest.approx(2.71)
    assert {found["nope"]["bits"][length]["state"] for length in ("128", "256", "512")} == {verdict.NOT_LEARNT}
    assert found["nope"]["rise"] == {}
    assert found["nope"]["keeps"] is None
    assert found["rope"]["rise"]["512"] == pytest.approx(2.305)
    assert found["rope"]["bits"]["512"] == {"mean": 5.0, "seeds": [5, 5]}


def test_nobody_has_learnt_what_byte_pairs_know_already() -> None:
    """After a few steps all arms are equally bad and perfectly flat; flat must not be praised then."""
    done = compared({f"{name} {seed}": trial(4.8, 4.8, 4.8, 4.8) for name in ("rope", "alibi") for seed in (0, 1)})
    assert done["gate"]["limit"] == 3.5
    assert not any(row["learnt"] for row in done["rows"])
    assert needs(done) == []
    assert any("Not learnt at this budget: RoPE (4.80), ALiBi (4.80)" in said.en for said in sentences(done))


def test_behaviour_and_how_far_it_stays_flat() -> None:
    done = compared({
        "alibi 0": trial(2.0, 2.04, 2.05, 2.04), "alibi 1": trial(2.0, 2.05, 2.04, 2.05),
        "shaw 0": trial(2.0, 2.05, 2.06, 2.0), "shaw 1": trial(2.0, 2.05, 2.06, 2.0),
        "rope 0": trial(2.0, 2.06, 2.0, 2.5), "rope 1": trial(2.0, 2.06, 2.0, 2.5),
        "t5 0": trial(2.0, 1.5, 1.5, 2.45), "t5 1": trial(2.0, 1.5, 1.5, 2.45),
    })  # fmt: skip
    found = rows(done)
    kept = {name: (row["keeps"]["factor"], row["keeps"]["at_least"], row["behaviour"]) for name, row in found.items()}
    assert kept == {
        "alibi": (8, True, "flat"),
        "shaw": (2, False, "flat"),
        "rope": (1, False, "breaks"),
        "t5": (4, False, "fades"),
    }


def test_rises_are_paired_by_seed() -> None:
    done = compared({"alibi 0": trial(2.0, 2.1, 2.1, 2.1), "alibi 1": trial(2.4, 2.3, 2.3, 2.3)})
    assert rows(done)["alibi"]["rise"]["512"] == pytest.approx(0.0)


def test_what_cannot_be_asked_says_so() -> None:
    ends = trial(2.1, None, None, None, cannot="table ends at 64")
    found = rows(compared({"learned 0": ends, "learned 1": ends, "nope 0": trial(2, 2, 2, 2), "nope 1": trial(2, 2, 2, 2)}))
    assert found["learned"]["learnt"]
    assert found["learned"]["bits"]["128"] == {"state": "cannot: table ends at 64"}
    assert found["learned"]["keeps"] == {"factor": 1, "at_least": False}
    assert found["learned"]["behaviour"] is None


@pytest.mark.parametrize("broken", ["raised", "diverged", "missing"])
def test_what_came_to_nothing_is_neither_best_nor_blank(broken: str) -> None:
    good = trial(2.0, 2.0, 2.0, 2.0)
    diverged = trial(1.0, 1.0, 1.0, 1.0)
    diverged["result"]["failed"] = "the loss was no number at step 7"
    bad = {"raised": {"state": "failed: ValueError: planted"}, "diverged": diverged, "missing": None}[broken]
    done = compared({"rope 0": trial(1.0, 1.0, 1.0, 1.0), "rope 1": bad, "alibi 0": good, "alibi 1": good})
    assert done["gate"]["best"] == "alibi"
    assert "state" in rows(done)["rope"]["bits"]["64"]
    assert verdict.failed(done).keys() == {"rope"}
    assert any(said.en.startswith("Came to nothing: rope failed:") for said in sentences(done))


def test_an_encoding_that_cannot_be_built_here_is_no_failure() -> None:
    good = trial(2.0, 2.0, 2.0, 2.0)
    done = compared({"rope 0": good, "rope 1": good}, failures={"floater": "cannot: FLOATER needs torchdiffeq"})
    assert rows(done)["floater"]["bits"]["64"] == {"state": "cannot: FLOATER needs torchdiffeq"}
    assert verdict.failed(done) == {}
    json.dumps(done, allow_nan=False)


def test_picks_name_everything_that_cannot_be_told_from_the_best() -> None:
    done = compared({
        "alibi 0": trial(2.0, 2.0, 2.0, 2.0), "alibi 1": trial(2.1, 2.1, 2.1, 2.1),
        "shaw 0": trial(2.05, 2.0, 2.0, 2.2), "shaw 1": trial(2.08, 2.0, 2.0, 2.2),  # worse, then better: a tie
        "rope 0": trial(2.06, 2, 2, 5), "rope 1": trial(2.16, 2, 2, 5),  # worse with both seeds
    })  # fmt: skip
    found = {need.need.en.split(" (")[0]: need.pick.en for need in needs(done)}
    assert found["Text no longer than in training"] == "ALiBi, Shaw"
    assert found["Text 8× as long as in training"] == "ALiBi"


def test_a_reversal_is_missed_by_symmetric_biases_only() -> None:
    good = trial(2.0, 2.0, 2.0, 2.0)
    blind = {"alibi": {"order": {"bidirectional": 1e-15, "causal": 3.0}, "reordered": 0.48}}
    trials = {f"{name} {seed}": good for name in ("alibi", "rope") for seed in (0, 1)}
    said = [words.en for words in sentences(compared(trials, **blind))]
    assert any("ALiBi looking both ways misses a reversal" in sentence and "(0.48)" in sentence for sentence in said)
    assert not any("misses a reversal" in words.en for words in sentences(compared(trials)))


def test_the_recipe_is_told_as_it_is() -> None:
    good = trial(2.0, 2.0, 2.0, 2.0)
    done = compared({"rope 0": good, "rope 1": good})
    assert done["recipe"] == {
        "length": 64, "multiples": [1, 2, 4, 8], "lengths": [64, 128, 256, 512], "targets": 32, "windows": 96, "batch": 8,
        "learning_rate": 0.01, "warmup": 0.1, "weight_decay": 0.1, "betas": [0.9, 0.95], "clip": 1.0,
        "shape": {"d_model": 64, "n_heads": 4, "n_layers": 2, "widening": 4},
    }  # fmt: skip
    assert done["bytes_per_arm"] == 100 * 8 * 64


def test_the_command_repeats_the_steps_and_not_the_time() -> None:
    good = trial(2.0, 2.0, 2.0, 2.0)
    assert compared({"rope 0": good, "rope 1": good})["command"] == "posenc compare --encodings rope --steps 100 --seed 0"
