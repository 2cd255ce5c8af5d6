"""How many steps fit a budget, and where things land on paper."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from posenc.catalogue import lookup
from posenc.lab.commands import compare as compare_
from posenc.lab.commands import run
from posenc.lab.engines import workers
from posenc.lab.experiment import Experiment, read_experiment
from posenc.lab.run import budget

COMPARED = read_experiment("compare_text")


def chosen(encodings: str | None) -> Experiment:
    return compare_.chosen(COMPARED, encodings, 0, 300.0, None)


def test_makespan_by_hand() -> None:
    assert budget.makespan([3, 1, 1, 1], 1) == 6
    assert budget.makespan([3, 1, 1, 1], 2) == 3  # the long one alone
    assert budget.makespan([1, 1, 3, 1], 2) == 3  # whatever the order
    assert budget.makespan([2, 2, 2], 2) == 4
    assert budget.makespan([1], 5) == 1


@given(
    st.floats(1, 5000),
    st.integers(1, 8),
    st.lists(st.builds(budget.Speed, st.floats(1e-3, 1), st.floats(0, 0.02), st.floats(0, 9)), min_size=1, max_size=12),
)
def test_steps_fit_and_ten_more_would_not(seconds: float, workers: int, speeds: list[budget.Speed]) -> None:
    """The preset has ten steps, which are multiplied."""
    encodings = COMPARED.encodings[: len(speeds)]
    trials = COMPARED.model_copy(update={"encodings": encodings, "seeds": 1}).trials()
    by_kind = {budget.kind_of(trial): speed for trial, speed in zip(trials, speeds, strict=True)}
    factor = budget.largest_factor(trials, by_kind, workers, seconds)
    took, ten_more = (
        budget.makespan([10 * n * step + 960 * scoring + more for step, scoring, more in speeds], workers)
        for n in (factor, factor + 1)
    )
    assert ten_more > seconds
    assert took <= seconds or factor == 1


def test_what_breaks_takes_no_time() -> None:
    trials = COMPARED.model_copy(update={"encodings": ("rope", "alibi"), "seeds": 1}).trials()
    speeds = {budget.kind_of(trials[0]): budget.Speed(0.1, 0.0, 0.0)}
    assert budget.largest_factor(trials, speeds, 1, 10.0) == 10  # a hundred steps of rope
    assert budget.largest_factor(trials, {}, 1, 10.0) == 1


def test_steps_that_were_planned_are_taken_again() -> None:
    planned = budget.multiplied(COMPARED, 7)
    assert planned.tasks[0].training.steps == 70
    kept = {"experiment": planned.model_dump(mode="json")}
    assert budget.planned_before(COMPARED, kept) == planned
    assert budget.planned_before(planned, kept) == planned  # resumed
    assert budget.planned_before(COMPARED, None) is None
    assert budget.planned_before(COMPARED.model_copy(update={"first_seed": 1}), kept) is None
    assert budget.planned_before(COMPARED.model_copy(update={"budget": None}), kept) is None


def test_cores_are_those_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for quota, expected in {"max 100000": 8, "250000 100000": 3, "50000 100000": 1, "": 8}.items():
        monkeypatch.setattr(Path, "read_text", lambda self, encoding, quota=quota: quota)
        assert workers.cores() == expected


@pytest.mark.parametrize(("word", "seconds"), [("90s", 90), ("5m", 300), ("1.5h", 5400), (" 2m ", 120)])
def test_budgets(word: str, seconds: float) -> None:
    assert compare_.parse_budget(word) == seconds


@pytest.mark.parametrize(
    "word", ["", "5", "5x", "0m", "0.0s", "-1m", "nan", "nans", "infs", "1e9s", "5 m", "m", "1h30m", "9" * 400 + "h"]
)
def test_what_is_no_budget(word: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected a time such as 90s, 5m or 1h"):
        compare_.parse_budget(word)


def test_all_encodings_and_one_at_random_positions_are_compared_by_default() -> None:
    assert chosen(None).encodings == (*lookup.FOUNDATION, "rope+randomized")
    assert chosen("alibi, t5+randomized").encodings == ("alibi", "t5+randomized")


def test_the_options_are_settings_of_the_preset() -> None:
    assert chosen(None) == COMPARED
    made = compare_.chosen(COMPARED, "rope", 3, None, 25)
    assert (made.budget, made.tasks[0].training.steps) == (None, 25)
    assert [trial.seed for trial in made.trials()] == [3, 4]


# What fits ------------------------------------------------------------------------------------------------------------


def made_plan(
    monkeypatch: pytest.MonkeyPatch, seconds: float, share: float = 1.0, scoring: float = 0.48
) -> tuple[budget.Plan, list[str]]:
    """What is planned where a step takes .01 s, twice that for CoPE, and scoring .48 s, on two workers. The clock stands.

    A row has 64 + 128 + 256 + 512 = 960 tokens at all lengths.
    """
    experiment = compare_.chosen(COMPARED, "rope,cope,alibi,nope", 0, seconds, None)
    steps = {trial: 0.02 if trial.encoding == "cope" else 0.01 for trial in experiment.trials()}
    speeds = {budget.kind_of(trial): budget.Speed(step, scoring / 960, 0.0) for trial, step in steps.items()}
    monkeypatch.setattr(budget, "speeds", lambda *_: (speeds, share))
    said: list[str] = []
    now = 1000.0
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    hardware: Any = None
    made = budget.plan(experiment, 2, None, hardware, now + seconds, lambda one: 0.0, lambda line: None, said.append)
    assert made.until <= now + seconds - budget.CLOSING
    ends = budget.time_of(made.experiment.trials(), speeds, 2)
    assert ends <= seconds - budget.CLOSING - budget.STARTING
    return made, said


def test_a_budget_that_suffices_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made, said = made_plan(monkeypatch, 60.0)
    assert (made.experiment.seeds, len(made.experiment.encodings)) == (2, 4)
    assert made.experiment.tasks[0].training.steps >= 200
    assert len(said) == 1
    assert "steps), so encodings may not be ranked" in said[0]


@pytest.mark.parametrize(
    ("seconds", "seeds", "encodings", "said"),
    [
        (23.0, 1, ("rope", "cope", "alibi", "nope"), "left out to fit 23 s: 1 of 2 seeds"),
        (17.0, 1, ("rope", "alibi"), "left out to fit 17 s: 1 of 2 seeds; the encodings cope, nope"),
    ],
)
def test_seeds_go_first_then_the_slowest_encodings(
    monkeypatch: pytest.MonkeyPatch, seconds: float, seeds: int, encodings: tuple[str, ...], said: str
) -> None:
    made, lines = made_plan(monkeypatch, seconds)
    assert (made.experiment.seeds, made.experiment.encodings) == (seeds, encodings)
    assert lines[0] == said
    asked = compare_.chosen(COMPARED, "rope,cope,alibi,nope", 0, seconds, None)
    kept = {"experiment": made.experiment.model_dump(mode="json")}
    assert budget.planned_before(asked, kept) == made.experiment  # resumed
    command = "posenc compare --encodings rope,cope,alibi,nope --steps {steps} --seed 0"
    again = command.replace("rope,cope,alibi,nope", ",".join(encodings))
    assert budget.repeated(command, asked, made.experiment) == again


def test_lengths_go_last_the_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two encodings on two workers: 2 s of training and 9.6 s of scoring at four lengths, 4.48 s at three."""
    made, lines = made_plan(monkeypatch, 20.0, scoring=9.6)
    assert (made.experiment.seeds, made.experiment.encodings) == (1, ("rope", "alibi"))
    assert made.experiment.tasks[0].task.lengths == (64, 128, 256)
    assert lines[0] == ("left out to fit 20 s: 1 of 2 seeds; the encodings cope, nope; the lengths 512 of language_model")
    asked = compare_.chosen(COMPARED, "rope,cope,alibi,nope", 0, 20.0, None)
    assert budget.planned_before(asked, {"experiment": made.experiment.model_dump(mode="json")}) == made.experiment
    with pytest.raises(ValueError, match=r"14 s is too short .* one seed of 2 encodings up to length 128 needs about 17s"):
        made_plan(monkeypatch, 14.0, scoring=9.6)


def test_less_is_left_out_step_by_step() -> None:
    speeds = {budget.kind_of(trial): budget.Speed(0.01, 0.0, 0.0) for trial in COMPARED.trials()}
    less = list(budget.smaller(COMPARED, speeds))
    shapes = [(one.seeds, len(budget.words_of(one)), len(one.tasks[0].task.lengths)) for one in less]
    assert shapes == [(2, 12, 4), *((1, count, 4) for count in range(12, 1, -1)), (1, 2, 3), (1, 2, 2)]


def test_a_preset_with_other_advice_is_the_same_experiment() -> None:
    """least_steps of a folder that was made before the preset had it."""
    preset = read_experiment("compare")
    ours = preset.model_dump(mode="json")
    theirs = ours | {
        "tasks": [{name: value for name, value in plan.items() if name != "least_steps"} for plan in ours["tasks"]]
    }
    assert theirs != ours
    assert run.grown_alone(theirs, ours)
    assert not run.grown_alone(theirs | {"size": ours["size"] | {"n_layers": 3}}, ours)


def test_what_is_too_short_is_refused_with_what_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    least = r"one seed of 2 encodings up to length 128 needs about 15s, all of it 26s"
    with pytest.raises(ValueError, match=rf"13 s is too short .* {least}"):
        made_plan(monkeypatch, 13.0)


def test_a_busy_machine_is_named_and_has_more_time_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    made, said = made_plan(monkeypatch, 60.0, share=0.5)
    assert said[0] == "this machine is busy: training gets 50% of a processor, so fewer steps fit"
    assert made.until < budget.time.monotonic() + 60.0 - 2 * budget.CLOSING + 1.0


def hold(shared: object, report: Any) -> int:
    budget.time.sleep(600)
    return 1


def test_what_runs_at_the_deadline_is_stopped() -> None:
    with workers.Workers(1, None) as running:
        assert list(running.run([workers.Job(hold, ())] * 3, until=budget.time.monotonic() + 0.5)) == []
