"""What the preset study needs: generated prose, equal tuning, random and dropped positions, kept weights."""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from lab_sweeps import experiment, made_up, made_up_sweep
from posenc.lab.experiment import Choice, Experiment, Trial, parse, read_experiment
from posenc.lab.experiment.arm import Arm
from posenc.lab.records import learning_curve
from posenc.lab.records.record import RANDOM_POSITIONS, Record, Rows
from posenc.lab.run.repeat import differences
from posenc.lab.text import corpus, prose
from posenc.lab.trial import scoring
from posenc.lab.trial.training import Run, run_trial

COPY = {"name": "copy", "length": 4, "lengths": (4, 8), "held_out": 8}
SIZE = {"d_model": 16, "n_heads": 2, "n_layers": 1}


def trial(encoding: str, **changed: Any) -> Trial:
    given = {"task": COPY, "encoding": encoding, "seed": 0, "size": SIZE, "training": {"steps": 8, "rows": 4}}
    return Trial.model_validate({**given, **changed})


# Prose ----------------------------------------------------------------------------------------------------------------


def test_tales_are_the_same_bytes_everywhere() -> None:
    """Another digest is another text: every trial on it would run again."""
    tales = b"".join(prose.tale(number) for number in range(20))
    assert hashlib.sha256(tales).hexdigest() == TWENTY_TALES


TWENTY_TALES = "c36cc9b806217c2dc8082877ef008adfc30556bd4deff652961a18e976868113"


@pytest.mark.parametrize("number", [0, 1])
def test_a_tale_has_its_size_and_repeats_itself(number: int) -> None:
    tale = prose.tale(number)
    assert prose.SHORTEST <= len(tale) <= prose.LONGEST + 400
    text = tale.decode()
    assert "{" not in text
    ends = ". " if number == 0 else "。"
    sentences = [sentence for sentence in text.replace("\n", " " if number == 0 else "").split(ends) if len(sentence) > 8]
    assert 0.05 < 1 - len(set(sentences)) / len(sentences) < 0.4


def test_every_symbol_of_the_grammars_has_a_rule() -> None:
    people = {f"{letter}.{name}" for letter in "ab" for name in ("name", "trade", "thing", "colour", "number")}
    for language in ("en", "zh"):
        rules = prose.rules_of(language)
        used = {symbol[1:-1] for choices in rules.values() for choice in choices for symbol in _symbols(choice)}
        assert used <= rules.keys() | people
        assert rules.keys() <= used | {"sentence", "name", "town", "trade", "thing", "colour"}


def _symbols(choice: str) -> list[str]:
    return [f"{{{part.split('}')[0]}}}" for part in choice.split("{")[1:]]


# Tuning ---------------------------------------------------------------------------------------------------------------

TUNED = """
name: tuned
about: {en: Tuned., zh: 调参。}
seeds: 2
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [rope, alibi, t5]
fewer_seeds: {t5: 1}
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 8}
    training: {steps: 8, rows: 4, learning_rate: 0.004}
    learning_rates: [0.004, 0.002, 0.008]
    own_scales: {rope: {base: [500]}, alibi: {bias_max: [5, 11]}}
    tuning_steps: 3
"""


def tuned(changed: str = TUNED) -> Experiment:
    return parse(changed, Path())


def test_every_encoding_has_as_many_tries() -> None:
    tries: dict[str, list[Choice]] = {}
    for one in tuned().tuning():
        tries.setdefault(one.encoding, []).append(Choice(one.training.learning_rate, one.options))
        assert (one.training.steps, one.task.lengths) == (3, (4,))
    assert tries == {
        "rope": [Choice(0.004), Choice(0.002), Choice(0.004, (("base", 500.0),))],
        "alibi": [Choice(0.004), Choice(0.004, (("bias_max", 5.0),)), Choice(0.004, (("bias_max", 11.0),))],
        "t5": [Choice(0.004), Choice(0.002), Choice(0.008)],
    }


def test_positions_that_are_dropped_are_trained_as_rope() -> None:
    plan = tuned(TUNED.replace("alibi, t5]", "alibi, t5, rope+dropped]"))
    assert "rope+dropped" not in {one.encoding for one in plan.tuning()}
    chosen = Choice(0.008, (("base", 500.0),))
    found = plan.trials({("copy", "rope"): chosen, ("copy", "alibi"): Choice(0.002)})
    dropped = [one for one in found if one.encoding == "rope+dropped"]
    assert [(one.training.learning_rate, one.options) for one in dropped] == [(0.008, (("base", 500.0),))] * 2
    alone = tuned(TUNED.replace("[rope, alibi, t5]", "[rope+dropped, alibi, t5]").replace("rope: {base: [500]}, ", ""))
    assert [one.encoding for one in alone.tuning()].count("rope+dropped") == 3


def test_settings_reach_every_model_of_an_encoding() -> None:
    with_fire = TUNED.replace("alibi, t5]", "alibi, t5, fire]")
    plan = tuned(with_fire.replace("own_scales:", "settings: {fire: {first_length: 2}}\n    own_scales:"))
    default = next(one for one in tuned(with_fire).trials() if one.encoding == "fire")
    found = [one for one in [*plan.trials(), *plan.tuning()] if one.encoding == "fire"]
    assert {one.settings for one in found} == {(("first_length", 2),)}
    assert {one.settings for one in plan.trials() if one.encoding != "fire"} == {()}
    (module,) = found[0].arm.create(d_model=16, n_heads=2, n_layers=1, positions=8)
    assert module.configuration["first_length"] == 2
    assert found[0].key("") != default.key("")
    assert Trial.model_validate(found[0].model_dump()) == found[0]
    assert "settings" not in default.model_dump()


def test_what_scores_best_is_trained_and_reported(tmp_path: Path) -> None:
    """Made-up scores: RoPE is best with its other base, ALiBi at once, T5 at the last rate."""

    def train(one: Trial, *given: Any) -> Record:
        best = one.options == (("base", 500.0),) or (one.encoding, one.training.learning_rate) == ("t5", 0.008)
        return made_up(one, *given, bits=1.0, exact=0.9 if best else 0.5)

    outcome = made_up_sweep(tmp_path, experiment=tuned(), train=train)
    assert (outcome.ran, outcome.failed, outcome.missing) == (9 + 5, (), ())
    manifest = __import__("json").loads((tmp_path / "experiment.json").read_text())
    assert [(one["encoding"], one["learning_rate"], one.get("options")) for one in manifest["chosen"]] == [
        ("rope", 0.004, [["base", 500.0]]),
        ("alibi", 0.004, None),
        ("t5", 0.008, None),
    ]
    again = made_up_sweep(tmp_path, experiment=tuned(), train=train)
    assert (again.ran, again.reused, again.others) == (0, 14, 0)


def test_encodings_with_fewer_seeds_come_last() -> None:
    assert [(one.encoding, one.seed) for one in tuned().trials()] == [
        ("rope", 0), ("alibi", 0), ("rope", 1), ("alibi", 1), ("t5", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tuning_steps: 3", "after: [yarn]\n    encodings: [alibi, rope]", None),
        (
            "{rope: {base: [500]}, alibi: {bias_max: [5, 11]}}\n",
            "{}\n    encodings: [alibi]\n    after: [yarn]\n",
            "after: .*rope",
        ),
        ("{base: [500]}", "{base: [500, 600, 700]}", "own_scales: rope has 3 values; expected fewer than the 3"),
        ("own_scales: {rope", "own_scales: {xpos", "own_scales: xpos is none of the encodings"),
        (
            "own_scales:",
            "settings: {xpos: {base: 500}}\n    own_scales:",
            "settings: xpos is none of the encodings of copy",
        ),
        ("own_scales:", "settings: {t5: {buckets: 8}}\n    own_scales:", "settings of t5 in copy: .*buckets"),
        ("own_scales:", "settings: {t5: {n_buckets: 1}}\n    own_scales:", "n_buckets"),
        ("{t5: 1}", "{t5: 3}", "fewer_seeds: expected at most 2 for t5, got 3"),
        ("{t5: 1}", "{shaw: 1}", "fewer_seeds: shaw is none of the encodings"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(old: str, new: str, said: str | None) -> None:
    assert TUNED.count(old) == 1
    if said is None:
        assert tuned(TUNED.replace(old, new)).trials()
    else:
        with pytest.raises(ValueError, match=said):
            tuned(TUNED.replace(old, new))


@pytest.mark.parametrize("text", ["a: [1\nb: 2", "a: b: c", "tasks: 1\nabout: 2"])
def test_an_error_of_a_file_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"wrong\.yaml") as caught:
        read_experiment(str(path))
    assert "\n" not in str(caught.value)


def test_the_preset_study_is_what_it_says() -> None:
    study = read_experiment("study")
    assert len(study.encodings) == 18
    assert len(study.trials()) == 18 * 5
    assert len(study.tuning()) == 17 * 5  # rope+dropped is trained as rope is
    (plan,) = study.tasks
    assert plan.training.steps * plan.training.rows * plan.task.length == pytest.approx(8e6, rel=0.01)
    assert plan.task.lengths[-1] == 16 * plan.task.length
    assert {one.draws for one in study.trials() if one.encoding.endswith("+randomized")} == {8}


# Training and scoring ---------------------------------------------------------------------------------------------------


def test_scores_at_random_positions_are_the_mean_over_draws() -> None:
    """Every draw is scored again here, one after another, and averaged by hand."""
    one = trial("rope+randomized", draws=3)
    run, rows = Run(one, None), Rows()
    scoring.score_draws(run.model, run.arm, run.task, None, rows, 3, {})
    found = {(row["kind"], row["length"], row["item"]): row["value"] for row in rows.table().to_pylist()}
    assert {row["mode"] for row in rows.table().to_pylist()} == {RANDOM_POSITIONS}
    batch, seed = run.task.scored(8, None), scoring.seed_of("scored positions", 8)
    generator, bits = torch.Generator().manual_seed(seed), torch.zeros(8, dtype=torch.float64)
    for _ in range(3):
        drawn = (
            torch.rand(1, 2 * run.task.tokens(8), generator=generator).argsort()[:, : batch.tokens.shape[1]].sort().values
        )
        at = run.arm.drawn_positions(1, 8, torch.Generator()).at(drawn)
        logits = run.model(batch.tokens, run.model.prepare(at)).double()
        lost = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none", ignore_index=-100)
        bits += lost.sum(1).detach() / (batch.targets >= 0).sum(1) / math.log(2) / 3
    assert [found["bits", 8, n] for n in range(8)] == pytest.approx(bits.tolist(), rel=1e-5)


def test_draws_need_random_positions() -> None:
    with pytest.raises(ValueError, match="draws: expected 0 without random positions, got 3"):
        trial("rope", draws=3)
    assert trial("rope+randomized").arm.spread == 1  # as posenc 0.1 did


def test_positions_are_dropped_for_the_last_eighth() -> None:
    assert Arm.parse("rope+dropped").phases(80) == [(0, 70), (70, 80)]
    assert Arm.parse("rope").phases(80) == [(0, 80)]
    run = Run(trial("rope+dropped"), None)
    kinds = [type(run.model.encoding(0)).__name__ for _ in run.losses()]
    assert kinds == ["RoPE"] * 7 + ["PositionalEncoding"]
    with pytest.raises(ValueError, match=r"expected rope\+dropped, got 'alibi\+dropped'"):
        Arm.parse("alibi+dropped")


def test_kept_weights_are_scored_and_not_trained_again(tmp_path: Path) -> None:
    one = trial("t5")
    first = run_trial(one, None, weights=tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    more = one.model_copy(update={"task": one.task.model_copy(update={"held_out": 16})})
    again, alone = run_trial(more, None, weights=tmp_path), run_trial(more, None)
    assert first is not None
    assert again is not None
    assert alone is not None
    assert again.about["seconds"]["training"] == first.about["seconds"]["training"]
    assert again.about["trained_as"] == one.key("")
    assert differences(again, alone) == ()
    assert differences(again, first) != ()
    assert file.stat().st_mtime_ns == written


def test_weights_have_a_key_of_what_decides_them() -> None:
    one = trial("rope")
    same = one.model_copy(
        update={"task": one.task.model_copy(update={"held_out": 16, "lengths": (4, 6)}), "after": ("ntk",)}
    )
    assert same.weights_key("") == one.weights_key("")
    assert same.key("") != one.key("")
    for other in (
        trial("rope", seed=1),
        one.with_steps(9),
        trial("rope", oracle=True),
        trial("rope", options=(("base", 9.0),)),
    ):
        assert other.weights_key("") != one.weights_key("")
    drawn = trial("rope+randomized", draws=2)
    assert drawn.model_copy(update={"task": same.task}).weights_key("") != drawn.weights_key("")  # drawn up to the longest


# The learning curve -----------------------------------------------------------------------------------------------------


def test_the_slope_is_that_of_a_straight_line_through_the_last_fifth() -> None:
    """Steps 0 … 100, a point every 5, whose middles are 2.5, 7.5 …: 2 bits a step before 80 and 0.01 from there on."""
    curve = [(step, 500 - 2 * min(step - 2.5, 80) - 0.01 * max(step - 2.5 - 80, 0)) for step in range(5, 101, 5)]
    assert learning_curve.slope(curve) == pytest.approx(0.2)
    draw = random.Random(1)
    noisy = [(step, loss + draw.uniform(-1e-3, 1e-3)) for step, loss in curve]
    assert learning_curve.slope(noisy) == pytest.approx(0.2, abs=5e-3)
    assert learning_curve.slope(curve[-2:]) is None
    assert learning_curve.slope([]) is None


def test_the_slope_is_that_of_the_last_phase_alone() -> None:
    """A point every 5 steps. The loss falls by 0.02 bits a step up to step 60, rises, and falls by 0.01 bits a step."""
    curve = [(step, 9 - 0.02 * (step - 2.5) if step <= 60 else 12 - 0.01 * (step - 2.5)) for step in range(5, 101, 5)]
    assert learning_curve.slope(curve, 60) == pytest.approx(0.01 * 8)  # a fifth of 40 steps; all eight points count
    assert learning_curve.slope(curve, 82) == pytest.approx(0.01 * 18 / 5)  # the point of steps 80 … 85 straddles
    assert learning_curve.slope(curve, 92) is None  # one point


def test_a_loss_that_rose_is_reported_as_diverged(tmp_path: Path) -> None:
    """With a rate of 1e9 the loss stays a number, and it is above that of the first steps."""
    rising = experiment(encodings=("rope",), seeds=1)
    tasks = [plan.model_copy(update={"training": plan.training.model_copy(update={"learning_rate": 1e9, "steps": 20})})
             for plan in rising.tasks]  # fmt: skip
    outcome = made_up_sweep(tmp_path, experiment=rising.model_copy(update={"tasks": tuple(tasks)}), train=None)
    assert outcome.failed == ()
    assert {problem.trial.task.name for problem in outcome.diverged} == {"copy", "recall"}
    assert all("the loss" in problem.line for problem in outcome.diverged)


def test_a_few_steps_cannot_show_that_a_loss_rose() -> None:
    curve = [(step, float(step)) for step in range(1, 11)]
    assert learning_curve.diverged(curve[:2]) is None
    assert learning_curve.diverged(curve) == "the loss rose from 1 bits up to step 1 to 10 bits up to step 10"


def test_generated_prose_is_a_corpus() -> None:
    text = corpus.read_corpus(None, 2049, "prose")
    assert text.sha256 == corpus.read_corpus(None, 129, "prose").sha256
    assert len(text.held_out) > 90
    assert text.notes[0].zh.startswith("由 posenc 的语法")


def test_the_long_prose_is_the_short_one_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study reads more bytes in training than the short prose has, so its text must be another one."""
    monkeypatch.setattr(prose, "TALES", {"prose": 20, "prose_6000": 40})
    short, long = (corpus.read_corpus(None, 129, name) for name in ("prose", "prose_6000"))
    assert {*short.train, *short.held_out} < {*long.train, *long.held_out}
    assert long.source.startswith("40 tales")


@pytest.mark.parametrize("name", ["study", "gpu"])
def test_no_trial_of_the_study_reads_its_text_twice(name: str) -> None:
    preset = read_experiment(name)
    for plan in preset.tasks:
        read = plan.training.steps * plan.training.rows * plan.task.length
        assert read < (1 - corpus.HELD_OUT) * prose.TALES[preset.text] * prose.SHORTEST
