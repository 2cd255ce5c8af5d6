"""Every target of the tasks that draw themselves, found again in plain Python from what the model reads."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import comb
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from posenc.lab import tasks
from posenc.lab.tasks import drawn
from posenc.lab.tasks.task import Batch, Task

NAMES = ("copy", "addition", "recall", "flip_flop", "passkey")
FLIP_FLOP = (Path(__file__).parents[2] / "results" / "claims" / "flip_flop.py").read_text("utf-8")  # a study's own task
Row = list[int]
NOTHING = -100


def of(task: str, /, **settings: object) -> Task:
    if task == "flip_flop":
        return tasks.read({"name": "flip_flop.py:FlipFlop", "source": FLIP_FLOP, **settings})
    return tasks.load(task)(**settings)


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows_of(batch: Batch) -> list[tuple[Row, Row]]:
    assert batch.tokens.shape == batch.targets.shape
    assert batch.tokens.dtype == batch.targets.dtype == torch.int64
    return list(zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True))


# What has to be said, from what is read.


def after(prompt: int, answer: Row, tokens: Row) -> Row:
    """Targets where the answer is read as it is said, and nothing before its first token is asked."""
    assert tokens[prompt:] == answer[:-1]
    return [NOTHING] * (prompt - 1) + answer


def copy(tokens: Row) -> Row:
    """Of eight symbols: 8 begins, 9 separates, 10 ends."""
    assert tokens[0] == 8
    equals = tokens.index(9)
    symbols = tokens[1:equals]
    assert all(0 <= symbol < 8 for symbol in symbols)
    return after(equals + 1, [*symbols, 10], tokens)


def addition(tokens: Row) -> Row:
    assert tokens[0] == 10
    plus, equals = tokens.index(11), tokens.index(12)
    a, b = tokens[1:plus], tokens[plus + 1 : equals]
    assert len(a) == len(b)
    total = sum(digit * 10**n for number in (a, b) for n, digit in enumerate(number))
    digits = [int(digit) for digit in reversed(f"{total:0{len(a) + 1}d}")]
    return after(equals + 1, [*digits, 13], tokens)


def recall(tokens: Row) -> Row:
    """Of eight values and 32 keys. A key that came before asks for what followed it."""
    assert tokens[0] == 40
    followed, targets = dict[int, int](), [NOTHING]
    asked = set[int]()
    for place in range(1, len(tokens), 2):
        key, value = tokens[place], (tokens[place + 1] if place + 1 < len(tokens) else None)
        assert 8 <= key < 40
        if key in followed:
            assert value in (followed[key], None)
            assert key not in asked
            asked.add(key)
        else:
            assert not asked, "pairs come before queries"
            assert value is not None
            assert value < 8
        targets += [followed.get(key, NOTHING), NOTHING]
        followed[key] = followed[key] if value is None else value
    assert len(asked) == min(4, len(followed))
    return targets[: len(tokens)]


def flip_flop(tokens: Row) -> Row:
    """0 and 1 are bits, 2 writes, 3 reads, 4 is ignored."""
    memory, targets = NOTHING, list[int]()
    assert tokens[0] == 2
    assert tokens[-1] == 3
    for place in range(0, len(tokens), 2):
        instruction, bit = tokens[place], (tokens[place + 1] if place + 1 < len(tokens) else memory)
        assert instruction in (2, 3, 4)
        assert bit in (0, 1)
        if instruction == 2:
            memory = bit
        if instruction == 3:
            assert bit == memory
        targets += [memory if instruction == 3 else NOTHING, NOTHING]
    return targets[:-1]


def passkey(tokens: Row) -> Row:
    """Ten digits, eight words of filler, then 18 begins, 19 announces, 20 asks."""
    announced, asked = tokens.index(19), tokens.index(20)
    key = tokens[announced + 1 : announced + 5]
    assert all(digit < 10 for digit in key)
    filler = tokens[1:announced] + tokens[announced + 5 : asked]
    assert tokens[0] == 18
    assert all(10 <= word < 18 for word in filler)
    return after(asked + 1, key, tokens)


TARGETS: dict[str, Callable[[Row], Row]] = {
    "copy": copy,
    "addition": addition,
    "recall": recall,
    "flip_flop": flip_flop,
    "passkey": passkey,
}

# How many units of length a row has, found again from what is read.
LENGTH: dict[str, Callable[[Row], int]] = {
    "copy": lambda row: row.index(9) - 1,
    "addition": lambda row: row.index(11) - 1,
    "recall": lambda row: len({token for token in row if 8 <= token < 40}),
    "flip_flop": lambda row: (len(row) + 1) // 2,
    "passkey": lambda row: sum(10 <= token < 18 for token in row),
}

SHORTEST = dict.fromkeys(NAMES, 1) | {"flip_flop": 2}


@pytest.mark.parametrize("name", NAMES)
def test_every_target_is_what_the_row_asks_for(name: str) -> None:
    task, generator = of(name), random()
    batches = [(None, task.training_batch(5, generator, None)) for _ in range(60)]
    batches += [(length, task.scored(length, None)) for length in (SHORTEST[name], *task.lengths)]
    for length, batch in batches:
        for tokens, targets in rows_of(batch):
            assert targets == TARGETS[name](tokens)
            assert max(tokens + targets) < task.vocabulary
            assert min(tokens) >= 0
            own = LENGTH[name](tokens)
            assert length is None or own == length
            assert len(tokens) == task.tokens(own)


@pytest.mark.parametrize("name", NAMES)
def test_every_token_occurs(name: str) -> None:
    """The vocabulary is no larger than it has to be, every target can be had, and chance knows the answers' alphabet."""
    task = of(name)
    batch = task.scored(task.length, None)
    assert set(batch.tokens.flatten().tolist()) | set(batch.targets.flatten().tolist()) - {NOTHING} == set(
        range(task.vocabulary)
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_one_length_and_all_lengths_come_up_to_the_trained_one(name: str) -> None:
    task, generator, seen = of(name, length=6, lengths=(6, 8)), random(), set[int]()
    for _ in range(200):
        lengths = {LENGTH[name](tokens) for tokens, _ in rows_of(task.training_batch(3, generator, None))}
        assert len(lengths) == 1
        seen |= lengths
    assert seen == set(range(SHORTEST[name], 7))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_decided_by_the_generator_alone(name: str) -> None:
    task = of(name)
    first, again, other = (task.training_batch(32, random(seed), None) for seed in (0, 0, 1))
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert first.tokens.shape != other.tokens.shape or not torch.equal(first.tokens, other.tokens)
    assert first.item is None


@pytest.mark.parametrize("name", NAMES)
def test_scored_rows_are_always_the_same(name: str) -> None:
    task = of(name, held_out=40)
    torch.manual_seed(0)
    first = task.scored(task.length, None)
    torch.manual_seed(1)
    again = task.scored(task.length, None)
    assert torch.equal(first.tokens, again.tokens)
    assert torch.equal(first.targets, again.targets)
    assert first.item is not None
    assert first.item.tolist() == list(range(40))
    assert len(first.tokens) == 40
    assert len({tuple(row) for row in first.tokens.tolist()}) > 30


@pytest.mark.parametrize("name", NAMES)
def test_scored_rows_are_never_trained_on(name: str) -> None:
    """At a length of some thousand different rows: so many are trained on that nearly all others are met."""
    settings = {
        "copy": {"alphabet": 4, "length": 6},
        "addition": {"length": 2},
        "recall": {"keys": 5, "values": 2, "queries": 1, "length": 4},
        "flip_flop": {"length": 7},
        "passkey": {"digits": 2, "filler": 2, "length": 4},
    }[name]
    task = of(name, **settings, lengths=(settings["length"],))
    scored = {tuple(row) for row in task.scored(task.length, None).tokens.tolist()}
    trained, generator = set[tuple[int, ...]](), random()
    for _ in range(400):
        batch = task.training_batch(100, generator, None)
        if batch.tokens.shape[1] == task.tokens(task.length):
            trained |= {tuple(row) for row in batch.tokens.tolist()}
    assert len(trained) > 1500
    assert not scored & trained
    assert len(scored) > 40


def test_one_row_in_eight_is_held_out_wherever_it_differs() -> None:
    everything = torch.tensor(list(product(range(4), repeat=7)))
    held = drawn.is_held_out(everything)
    assert abs(held.double().mean().item() - 1 / 8) < 0.01
    for place in range(7):
        for symbol in range(4):
            share = held[everything[:, place] == symbol].double().mean().item()
            assert abs(share - 1 / 8) < 0.03


def test_a_length_of_few_rows_is_not_divided() -> None:
    task, generator, trained = of("copy", alphabet=2, length=4, lengths=(4,)), random(), set[tuple[int, ...]]()
    for _ in range(100):
        trained |= {tuple(row) for row in task.training_batch(32, generator, None).tokens.tolist()}
    everything = {(2, *bits, 3, *bits) for length in (1, 2, 3, 4) for bits in product((0, 1), repeat=length)}
    assert trained == everything
    assert {tuple(row) for row in task.scored(4, None).tokens.tolist()} == {row for row in everything if len(row) == 10}


@pytest.mark.parametrize(
    ("name", "length", "settings", "expected"),
    [
        ("copy", 1, {"alphabet": 4, "length": 3}, 4),
        ("addition", 1, {"length": 1}, 100),
        ("recall", 2, {"keys": 3, "values": 2, "queries": 2, "length": 2}, 48),
        ("recall", 3, {"keys": 3, "values": 2, "queries": 1, "length": 3}, 144),
        ("flip_flop", 4, {"length": 4, "acting": 1}, 50),
        ("flip_flop", 4, {"length": 4}, 18),
        ("passkey", 2, {"digits": 1, "filler": 2, "length": 2}, 120),
    ],
)
def test_how_many_rows_there_are(name: str, length: int, settings: dict[str, int], expected: int) -> None:
    """Counted: so many draws that none is missed."""
    task = of(name, **settings, lengths=(settings["length"],))
    assert isinstance(task, drawn.Drawn)
    rows = {tuple(row) for row in task.draw(20_000, length, random()).tokens.tolist()}
    assert len(rows) == task.different(length) == expected


def test_chance_by_hand() -> None:
    assert of("copy").chance(10) == pytest.approx(1 / 8**10, rel=1e-12)
    assert of("copy", alphabet=4).chance(3) == 1 / 64
    assert of("addition").chance(2) == pytest.approx(1 / 200, rel=1e-12)
    assert of("recall").chance(8) == of("recall").chance(32) == 1 / 8**4
    assert of("recall").chance(2) == 1 / 64
    assert of("passkey").chance(64) == pytest.approx(1e-4, rel=1e-12)


@pytest.mark.parametrize(
    ("length", "acts"), [(2, Fraction(1)), (4, Fraction(1)), (14, Fraction(1, 4)), (26, Fraction(1, 8))]
)
def test_chance_of_flip_flop_by_the_number_of_reads(length: int, acts: Fraction) -> None:
    """Σ over r reads in the middle: their probability, times a half for each and for the last."""
    middle, read = length - 2, acts / 2
    expected = sum(comb(middle, r) * read**r * (1 - read) ** (middle - r) / 2 ** (r + 1) for r in range(middle + 1))
    assert of("flip_flop").chance(length) == pytest.approx(float(expected), rel=1e-9)


def test_the_tail_of_flip_flop_is_sparse() -> None:
    """At eight times the length as many instructions that are not ignored: the first, the last and three."""
    task = of("flip_flop", held_out=2000)
    for length, distance in ((16, 4), (128, 32)):
        rows = task.scored(length, None).tokens
        assert ((rows == 2) | (rows == 3)).sum(dim=1).double().mean().item() == pytest.approx(5, abs=0.15)
        places = [place // 2 for row in rows.tolist() for place, token in enumerate(row) if token in (2, 3)]
        gaps = [after - before for before, after in pairwise(places) if after > before]
        assert sum(gaps) / len(gaps) > 0.7 * distance
    writes, reads = ((rows[:, 2:-2] == token).sum().item() for token in (2, 3))
    assert writes == pytest.approx(reads, rel=0.1)


def test_the_passkey_is_at_every_depth() -> None:
    task = of("passkey", length=4, lengths=(4,), held_out=1000)
    depths = [row.index(19) - 1 for row in task.scored(4, None).tokens.tolist()]
    assert {depth: pytest.approx(200, abs=60) for depth in range(5)} == {d: depths.count(d) for d in range(5)}


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_comes_as_often_as_chance_says(name: str) -> None:
    """The first target that is asked for, over rows drawn at random; where it is uniform."""
    task = of(name, held_out=4000)
    batch = task.scored(task.length, None)
    firsts = [next(target for target in row if target != NOTHING) for row in batch.targets.tolist()]
    alphabet = {"addition": 10, "passkey": 10, "flip_flop": 2}.get(name, 8)
    assert set(firsts) == set(range(alphabet))
    assert all(abs(firsts.count(a) / 4000 - 1 / alphabet) < 0.03 for a in range(alphabet))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("recall", {"keys": 31}, "keys: expected at least 32, as many as the longest row has pairs; got 31"),
        ("recall", {"loose": 1e9}, "loose"),
        ("flip_flop", {"length": 2, "lengths": (1, 2)}, "lengths: expected none below 2, got"),
        ("flip_flop", {"acting": 0}, "acting"),
        ("copy", {"lengths": (0, 10)}, "lengths: expected none below 1, got"),
        ("copy", {"alphabet": 1}, "alphabet"),
        ("copy", {"length": 11}, "lengths: expected ascending ones with length=11 among them"),
        ("copy", {"symbols": 4}, "symbols"),
        ("recall", {"keys": 3.5}, "keys"),
        ("passkey", {"digits": 0}, "digits"),
        ("copy", {"held_out": 0}, "held_out"),
    ],
)
def test_senseless_settings_are_refused(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        of(name, **settings)
    assert message in str(refused.value)


def test_senseless_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="rows: expected at least 1, got 0"):
        of("copy").training_batch(0, random(), None)
    for name in NAMES:
        shortest = SHORTEST[name]
        with pytest.raises(ValueError, match=f"length: expected at least {shortest}, got {shortest - 1}"):
            of(name).scored(shortest - 1, None)
    with pytest.raises(ValueError, match="length: expected at most 32 pairs, of which there are keys; got 33"):
        of("recall").scored(33, None)
