"""One trial: arms differ by the encoding only, and every length is scored on the very same bytes."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from posenc.lab import train
from posenc.lab.arm import DEFAULT, Arm
from posenc.lab.corpus import Windows
from posenc.lab.model import Shape, Transformer
from posenc.lab.train import Recipe
from posenc.positions import Positions

SMALL = Recipe(length=8, targets=4, windows=6, batch=2, shape=Shape(d_model=16, n_heads=2, n_layers=2))
TEXT = bytes(random.Random(0).choices(b"the cat sat on a mat; ", k=4000))


def data(recipe: Recipe = SMALL) -> tuple[Windows, Tensor]:
    return Windows([TEXT[:3000]], recipe.length + 1), Windows([TEXT[3000:]], recipe.longest + 1).spread(recipe.windows)


def ignore(_: float) -> None:
    pass


# What arms share ------------------------------------------------------------------------------------------------------


def shared(model: Transformer) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if not name.startswith("encodings")}


@pytest.mark.parametrize("name", DEFAULT)
def test_shared_weights_are_the_same_in_every_arm(name: str) -> None:
    ours, nope = (shared(train.new_model(Arm.parse(arm), SMALL, seed=3)) for arm in (name, "nope"))
    assert ours.keys() == nope.keys()
    assert all(torch.equal(ours[key], nope[key]) for key in ours)
    other = shared(train.new_model(Arm.parse(name), SMALL, seed=4))
    assert not any(torch.equal(ours[key], other[key]) for key in ours if ours[key].ndim > 1)


def test_making_a_model_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    train.new_model(Arm("transformer_xl"), SMALL, seed=1)
    assert torch.equal(torch.rand(1), expected)


class Watched(Windows):
    """Remembers which windows were asked for."""

    def __init__(self) -> None:
        super().__init__([TEXT], SMALL.length + 1)
        self.asked: list[list[int]] = []

    def take(self, number: Tensor) -> Tensor:
        self.asked.append(number.tolist())
        return super().take(number)


@pytest.mark.parametrize("name", ["sinusoidal", "t5", "rope+randomized", "learned+randomized"])
def test_the_order_of_the_data_is_the_same_in_every_arm(name: str) -> None:
    orders = []
    for arm, seed in ((Arm("nope"), 0), (Arm.parse(name), 0), (Arm("nope"), 1)):
        watched = Watched()
        list(train.training(train.new_model(arm, SMALL, seed), arm, seed, 5, SMALL, watched))
        orders.append(watched.asked)
    assert orders[0] == orders[1] != orders[2]


def test_whether_layers_share_the_encoding_is_the_papers_choice() -> None:
    def own(name: str, layers: int) -> int:
        recipe = replace(SMALL, shape=replace(SMALL.shape, n_layers=layers))
        return train.new_model(Arm(name), recipe, 0).encoding_parameters()

    for name in ("shaw", "transformer_xl", "cope"):
        assert own(name, 2) == 2 * own(name, 1) > 0
    for name in ("t5", "learned"):
        assert own(name, 2) == own(name, 1) > 0
    assert own("floater", 2) == own("floater", 1) + SMALL.shape.d_model  # one more start of a path
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
        model = train.new_model(Arm(name), SMALL, 0)
        prepared = model.prepare(at)
        assert [bool(model.encoding(n).embed(x, prepared).any()) for n in range(2)] == acts


def test_encodings_parameters_are_trained_without_decay() -> None:
    model = train.new_model(Arm("t5"), SMALL, 0)
    decayed, rest = train.groups(model, SMALL.weight_decay)
    assert (decayed["weight_decay"], rest["weight_decay"]) == (SMALL.weight_decay, 0)
    assert any(parameter is model.encodings[0].table for parameter in rest["params"])
    assert {id(p) for group in (decayed, rest) for p in group["params"]} == {id(p) for p in model.parameters()}
    assert all(p.ndim == 2 for p in decayed["params"])


def test_randomised_positions_reach_the_longest_length() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = [Arm("rope", randomized=True).training_positions(8, 64, generator).coords[0] for _ in range(200)]
    assert all(bool((row.diff() > 0).all()) and len(row) == 8 for row in drawn)
    assert {value for row in drawn for value in row.tolist()} == set(range(64))
    assert Arm("rope").training_positions(8, 64, generator).coords[0].tolist() == list(range(8))


@pytest.mark.parametrize(
    ("word", "message"), [("rotary", "rope"), ("rope+random", "rope"), ("+randomized", "unknown encoding ''")]
)
def test_unknown_arms_point_to_the_right_name(word: str, message: str) -> None:
    with pytest.raises(ValueError, match="unknown encoding") as caught:
        Arm.parse(word)
    assert message in str(caught.value)


# The model ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFAULT)
def test_no_byte_sees_what_comes_after_it(name: str) -> None:
    model = train.new_model(Arm.parse(name), SMALL, 0).eval()
    before = torch.randint(256, (1, 8), generator=torch.Generator().manual_seed(0))
    after = torch.cat([before[:, :5], before[:, 5:] ^ 1], dim=1)
    at = model.prepare(Positions.arange(1, 8))
    one, other = model(before, at), model(after, at)
    assert torch.allclose(one[:, :5], other[:, :5], atol=1e-6)
    assert not torch.allclose(one[:, 5:], other[:, 5:], atol=1e-3)
    assert torch.allclose(model(before, at, last=3), one[:, -3:], atol=1e-6)


def test_the_first_guess_is_nearly_uniform() -> None:
    windows, _ = data()
    first = next(train.training(train.new_model(Arm("nope"), SMALL, 0), Arm("nope"), 0, 10, SMALL, windows))
    assert abs(first - 8) < 0.1


def test_training_lowers_the_loss() -> None:
    windows, held_out = data()
    made = train.trial(Arm("alibi"), 0, 200, SMALL, windows, held_out, ignore)["result"]
    assert [step for step, _ in made["curve"]] == list(range(10, 201, 10))
    assert made["curve"][0][1] > 5 > made["curve"][-1][1]
    assert all(bits < 5 for bits in made["bits"].values())


def test_a_trial_is_the_same_every_time() -> None:
    windows, held_out = data()
    one, other = (train.trial(Arm("rope", True), 5, 10, SMALL, windows, held_out, ignore)["result"] for _ in range(2))
    assert one == other


def test_the_schedule_goes_up_and_down_in_straight_lines() -> None:
    rates = [train.schedule(step, 100, 0.1) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates.index(max(rates)) in (8, 9, 10)
    assert rates[50] == pytest.approx(0.5)
    assert 0 < rates[-1] < 0.011
    assert train.schedule(0, 1, 0.1) == 1.0


def test_a_loss_that_is_no_number_ends_the_trial() -> None:
    windows, held_out = data()
    recipe = replace(SMALL, learning_rate=math.inf)
    made = train.trial(Arm("nope"), 0, 20, recipe, windows, held_out, ignore)["result"]
    assert made["failed"] == "the loss was no number at step 2"
    assert "bits" not in made


def test_a_score_that_is_no_number_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    windows, held_out = data()
    monkeypatch.setattr(train, "losses_of", lambda model, held_out, length, last: torch.full((1, last), math.nan))
    made = train.trial(Arm("nope"), 0, 2, SMALL, windows, held_out, ignore)["result"]
    assert made["failed"] == "the score was no number"
    assert "bits" not in made


# Scoring --------------------------------------------------------------------------------------------------------------


class Pairs:
    """In place of a model: knows the byte before and nothing else, so the length of the context cannot matter to it."""

    def __init__(self) -> None:
        self.logits = torch.randn(256, 256, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.lengths: list[int] = []

    def eval(self) -> None:
        pass

    def encoding(self, n: int) -> Any:
        return None

    def prepare(self, at: Positions) -> Positions:
        return at

    def __call__(self, tokens: Tensor, at: Positions, last: int) -> Tensor:
        assert at.coords[0].tolist() == list(range(tokens.shape[1]))
        self.lengths.append(tokens.shape[1])
        return self.logits[tokens[:, -last:]]


def test_every_length_is_scored_on_the_same_bytes() -> None:
    _, held_out = data()
    model = Pairs()
    scored = train.score(model, SMALL, held_out)  # type: ignore[arg-type]
    expected, count = 0.0, 0
    for row in held_out.tolist():
        for place in range(len(row) - SMALL.targets, len(row)):  # the last bytes of every window, each once
            weights = [math.exp(value) for value in model.logits[row[place - 1]].tolist()]
            expected -= math.log2(weights[row[place]] / sum(weights))
            count += 1
    assert count == SMALL.targets * len(held_out) == 24
    assert list(scored["bits"]) == ["8", "16", "32", "64"]
    assert set(model.lengths) == {8, 16, 32, 64}
    for bits in scored["bits"].values():
        assert bits == pytest.approx(expected / count, abs=1e-12)
    assert len(scored["by_position"]) == 16
    assert scored["by_position"][-1] == pytest.approx(scored["bits"]["64"], abs=1e-12)


class Marks(Pairs):
    """Remembers the windows it was shown, and answers alike always."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def __call__(self, tokens: Tensor, at: Positions, last: int) -> Tensor:
        self.seen.append(tokens)
        return torch.zeros(len(tokens), last, 256)


def test_contexts_grow_backwards_from_the_same_end() -> None:
    _, held_out = data()
    model = Marks()
    scored = train.score(model, SMALL, held_out)  # type: ignore[arg-type]
    assert set(scored["bits"].values()) == {8.0}  # a uniform guess
    for tokens in model.seen:
        length = tokens.shape[1]
        assert all(any(torch.equal(row, window[-length - 1 : -1]) for window in held_out) for row in tokens)


def test_learned_has_no_number_beyond_its_table() -> None:
    windows, held_out = data()
    made = train.trial(Arm("learned"), 0, 3, SMALL, windows, held_out, ignore)["result"]
    assert made["cannot"] == "table ends at 8"
    assert [value is None for value in made["bits"].values()] == [False, True, True, True]
    made = train.trial(Arm("learned", True), 0, 3, SMALL, windows, held_out, ignore)["result"]
    assert made["cannot"] is None
    assert None not in made["bits"].values()


def test_byte_pairs_are_counted_within_documents() -> None:
    documents, window = [b"abab", b"b"], b"ab" + bytes(80)
    counts = Counter(pair for text in documents for pair in itertools.pairwise(text))
    recipe = replace(SMALL, targets=1)
    held_out = torch.tensor([list(window[:2])] * 3)
    expected = -math.log2((counts[97, 98] + 1) / (sum(n for (a, _), n in counts.items() if a == 97) + 256))
    assert train.byte_pairs(documents, held_out, recipe) == pytest.approx(expected)
