"""One trial: arms differ by the encoding only, and every length is scored on the very same bytes."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from torch import Tensor

from posenc.lab.experiment import Size, Training, Trial
from posenc.lab.experiment.arm import Arm
from posenc.lab.records.record import NON_OVERLAPPING, SAME_TARGETS, Record
from posenc.lab.run import budget
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial import optimiser, scoring
from posenc.lab.trial.model import Transformer
from posenc.lab.trial.scoring import Scores
from posenc.lab.trial.training import Hardware, Run, new_model, run_trial
from posenc.positions import Positions

TASK = LanguageModel(length=8, lengths=(8, 16, 32, 64), targets=4, held_out=6, cut_up="longest")
SIZE = Size(d_model=16, n_heads=2, n_layers=2)
BYTES = bytes(random.Random(0).choices(b"the cat sat on a mat; ", k=4000))
TEXT = Corpus("a mat", "", (BYTES[:3000],), (BYTES[3000:3800], BYTES[3800:3900]))  # five held-out windows, and one


def small(
    name: str, steps: int = 1, seed: int = 0, *, size: Size = SIZE, task: LanguageModel = TASK, rate: float = 1e-2
) -> Trial:
    training = Training(steps=steps, rows=2, learning_rate=rate)
    return Trial(task=task, encoding=name, seed=seed, size=size, training=training)


def model_of(name: str, seed: int = 0, size: Size = SIZE) -> Transformer:
    return new_model(small(name, seed=seed, size=size))


def ignore(_: float) -> None:
    pass


def told(record: Record) -> dict[str, Any]:
    """Bits by length and by stretches of the longest windows, as means over targets; the training curve; what cannot be."""
    rows = record.rows.to_pylist()
    bits = {}
    for length in TASK.lengths:
        items = [row for row in rows if (row["kind"], row["mode"], row["length"]) == ("bits", SAME_TARGETS, length)]
        total = sum(row["weight"] for row in items)
        bits[length] = sum(row["value"] * row["weight"] for row in items) / total if items else None
    far = [row["value"] for row in rows if row["kind"] == "position" and row["length"] == 64]
    by_position = [sum(far[n : n + TASK.targets]) / TASK.targets for n in range(0, len(far), TASK.targets)]
    curve = [(row["step"], row["value"]) for row in rows if row["kind"] == "curve"]
    return {"bits": bits, "by_position": by_position, "curve": curve, "cannot": record.about["cannot"],
            "failed": record.about["failed"]}  # fmt: skip


def trained(name: str, steps: int, seed: int = 0, rate: float = 1e-2) -> dict[str, Any]:
    record = run_trial(small(name, steps, seed, rate=rate), TEXT)
    assert record is not None
    return told(record)


# What arms share ------------------------------------------------------------------------------------------------------


def test_making_a_model_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    model_of("transformer_xl", seed=1)
    assert torch.equal(torch.rand(1), expected)


def test_whether_layers_share_the_encoding_is_the_papers_choice() -> None:
    def own(name: str, layers: int) -> int:
        return model_of(name, size=Size(d_model=16, n_heads=2, n_layers=layers)).encoding_parameters()

    for name in ("shaw", "transformer_xl", "cope"):
        assert own(name, 2) == 2 * own(name, 1) > 0
    for name in ("t5", "learned"):
        assert own(name, 2) == own(name, 1) > 0
    assert own("floater", 2) == own("floater", 1) + SIZE.d_model  # one more start of a path
    for name in ("nope", "sinusoidal", "alibi", "rope", "xpos"):
        assert own(name, 2) == 0


def test_absolute_encodings_act_once_and_floater_at_every_layer() -> None:
    x, at = torch.zeros(1, 5, 16), Positions.arange(1, 5)
    for name, acts in {
        "sinusoidal": [True, False],
        "learned": [True, False],
        "floater": [True, True],
        "rope": [False] * 2,
    }.items():
        model = model_of(name)
        prepared = model.prepare(at)
        assert [bool(model.encoding(n).embed(x, prepared).any()) for n in range(2)] == acts


def test_encodings_parameters_are_trained_without_decay() -> None:
    model = model_of("t5")
    decayed, rest = optimiser.groups(model, 0.1)
    assert (decayed["weight_decay"], rest["weight_decay"]) == (0.1, 0)
    assert any(parameter is model.encodings[0].table for parameter in rest["params"])
    assert {id(p) for group in (decayed, rest) for p in group["params"]} == {id(p) for p in model.parameters()}
    assert all(p.ndim == 2 for p in decayed["params"])


def test_randomised_positions_reach_the_longest_length() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [Arm("rope", randomized=True).drawn_positions(8, 64, generator).coords[0] for _ in range(200)]
    assert all(bool((row.diff() > 0).all()) and len(row) == 8 for row in drawn)
    assert {value for row in drawn for value in row.tolist()} == set(range(64))
    assert Arm("rope").drawn_positions(8, 64, generator).coords[0].tolist() == list(range(8))
    further = [Arm("rope", randomized=True, spread=2).drawn_positions(64, 64, generator).coords[0] for _ in range(50)]
    assert {value for row in further for value in row.tolist()} == set(range(128))


@pytest.mark.parametrize(
    ("word", "message"), [("rotary", "rope"), ("rope+random", "rope"), ("+randomized", "unknown encoding ''")]
)
def test_unknown_arms_point_to_the_right_name(word: str, message: str) -> None:
    with pytest.raises(ValueError, match="unknown encoding") as caught:
        Arm.parse(word)
    assert message in str(caught.value)


# Training -------------------------------------------------------------------------------------------------------------


def test_the_first_guess_is_nearly_uniform() -> None:
    assert abs(next(Run(small("nope", 10), TEXT).losses()) - 8) < 0.1


def test_training_lowers_the_loss() -> None:
    made = trained("alibi", 200)
    assert [step for step, _ in made["curve"]] == list(range(10, 201, 10))
    assert made["curve"][0][1] > 5 > made["curve"][-1][1]
    assert all(bits < 5 for bits in made["bits"].values())


def test_a_trial_is_the_same_every_time() -> None:
    one, other = (trained("rope+randomized", steps=10, seed=5) for _ in range(2))
    assert one == other


def test_a_loss_that_is_no_number_ends_the_trial() -> None:
    made = trained("nope", steps=20, rate=1e300)
    assert made["failed"] == "the loss became NaN or infinite at step 2; lower learning_rate"
    assert set(made["bits"].values()) == {None}


@pytest.mark.parametrize("length", [16, 64])
def test_a_score_that_is_no_number_is_no_score(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = scoring.scores

    def broken(model: Transformer, tokens: Tensor, targets: Tensor, **_: Any) -> Scores:
        found = sound(model, tokens, targets)
        if tokens.shape[1] == length and int(found.counted[0].sum()) in (TASK.targets, TASK.lengths[-1]):
            found.bits[0, -1] = math.nan
        return found

    monkeypatch.setattr(scoring, "scores", broken)
    made = trained("nope", steps=2)
    assert made["cannot"] == {str(length): "the score was no number"}
    assert [at for at, bits in made["bits"].items() if bits is None] == [length]


# Scoring --------------------------------------------------------------------------------------------------------------


@torch.no_grad()
def bits_of(model: Transformer, window: list[int], place: int, length: int) -> float:
    """Of the byte at a place of a window, given the `length` bytes that end `window[-2]`, one logit at a time."""
    first = len(window) - 1 - length
    context = torch.tensor([window[first:-1]])
    logits = model(context, model.prepare(Positions.arange(1, length)))[0, place - 1 - first].double().tolist()
    return (math.log(sum(map(math.exp, logits))) - logits[window[place]]) / math.log(2)


def test_every_length_is_scored_on_the_same_bytes() -> None:
    """The last four bytes of every window, each once, whatever document it is of; the longest windows from their start."""
    run = Run(small("alibi", 30), TEXT)
    record = run.record()
    assert record is not None
    made = told(record)
    far = TASK.scored(64, TEXT)
    windows = [[*row, last] for row, last in zip(far.tokens.tolist(), far.targets[:, -1].tolist(), strict=True)]
    assert sorted(sum(bytes(window) in text for window in windows) for text in TEXT.held_out) == [1, 5]
    run.model.eval()
    for length in (8, 16, 32, 64):
        each = [bits_of(run.model, window, place, length) for window in windows for place in range(61, 65)]
        assert made["bits"][length] == pytest.approx(sum(each) / 24, abs=1e-5)
    assert len(made["by_position"]) == 16
    each = [bits_of(run.model, window, place, 64) for window in windows for place in range(5, 9)]
    assert made["by_position"][1] == pytest.approx(sum(each) / 24, abs=1e-5)
    assert made["by_position"][-1] == pytest.approx(made["bits"][64], abs=1e-5)


def test_learned_has_no_number_beyond_its_table() -> None:
    made = trained("learned", 3)
    assert made["cannot"] == dict.fromkeys(("16", "32", "64"), "table ends at 8")
    assert made["by_position"] == []
    assert [value is None for value in made["bits"].values()] == [False, True, True, True]
    made = trained("learned+randomized", 3)
    assert made["cannot"] == {}
    assert None not in made["bits"].values()


def test_windows_are_cut_up_at_every_length_or_at_the_longest() -> None:
    def cut_up(how: str) -> set[int]:
        run = Run(small("nope", task=TASK.model_copy(update={"cut_up": how})), TEXT)
        run.score()
        return {row["length"] for row in run.rows.table().to_pylist() if row["mode"] == NON_OVERLAPPING}

    assert cut_up("longest") == {64}
    assert cut_up("every length") == {8, 16, 32, 64}


# How long it would take ------------------------------------------------------------------------------------------------


def test_speeds_are_of_a_step_and_of_all_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = (TEXT, Hardware())
    speed, share = budget.speed(shared, small("nope"), ignore)
    assert 0 < speed.step < 10
    assert 0 < speed.of(small("nope")) - small("nope").training.steps * speed.step < 10
    assert 0 < share < 2  # of a processor
    monkeypatch.setattr(budget, "score", lambda trial, rows, text, hardware: (2.0, 3))
    speed = budget.speed(shared, small("nope"), ignore).speed
    assert speed.scoring * budget.scored(small("nope").task) == pytest.approx(4.0)  # of six windows
