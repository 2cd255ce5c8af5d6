"""The lab's numbers against loops in plain Python: rates, scores, attention by distance, changed frequencies."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from posenc.catalogue import lookup
from posenc.encodings.learned import Learned
from posenc.encodings.rope import RoPE
from posenc.lab.experiment import Size, Training, Trial
from posenc.lab.experiment.arm import Arm
from posenc.lab.records.record import Rows
from posenc.lab.tasks.task import IGNORE, Batch, Link, Task
from posenc.lab.trial import scoring
from posenc.lab.trial.attention_profile import Profile, add_similarity
from posenc.lab.trial.model import Transformer
from posenc.lab.trial.optimiser import schedule
from posenc.lab.trial.placed import Placed
from posenc.lab.trial.rope_rescaling import changed
from posenc.lab.trial.training import plan
from posenc.positions import Positions
from posenc.support.languages import Words

SMALL = Size(d_model=16, n_heads=2, n_layers=2)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def read(rows: Rows, kind: str, *columns: str) -> dict[tuple[object, ...], float]:
    return {tuple(row[name] for name in columns): row["value"] for row in rows.table().to_pylist() if row["kind"] == kind}


# The rate -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0.1), (10, 0.0), (20, 0.25), (100, 0.1), (7, 1.0)])
def test_the_rate_goes_up_and_down_in_straight_lines(steps: int, warmup: float) -> None:
    for step in range(steps):
        up = 1.0 if warmup * steps <= 1 else min(1.0, (step + 1) / (warmup * steps))
        assert schedule(step, steps, warmup) == pytest.approx(up * (steps - step) / steps, abs=1e-15)


# Scores ---------------------------------------------------------------------------------------------------------------


class Said:
    """In place of a model: the logits at a place are those of its token, from a table of fp64 numbers."""

    def __init__(self) -> None:
        self.table = torch.randn(5, 5, generator=seeded(0), dtype=torch.float64) * 3
        self.head = torch.nn.Linear(1, 1)

    def eval(self) -> None:
        pass

    def prepare(self, at: Positions) -> Positions:
        return at

    def hidden(self, tokens: Tensor, at: Positions) -> Tensor:
        assert at.coords[0].tolist() == list(range(tokens.shape[1]))
        return self.table[tokens]

    def logits(self, x: Tensor) -> Tensor:
        return x


def test_scores_of_items_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one item are counted together, by the number of targets; chunks of rows change nothing."""
    model = Said()
    tokens = torch.randint(5, (7, 6), generator=seeded(1))
    targets = torch.randint(5, (7, 6), generator=seeded(2)).masked_fill(torch.rand(7, 6, generator=seeded(3)) < 0.5, IGNORE)
    targets[:3] = model.table[tokens[:3]].argmax(-1)  # all right
    targets[1, 2] = (targets[1, 2] + 1) % 5  # but for one of the item
    item = torch.tensor([4, 0, 0, 2, 2, 2, 9])
    targets[6] = IGNORE  # an item that nothing is asked of has no row
    expected: dict[int, list[tuple[float, bool]]] = {}
    for row in range(7):
        for place in range(6):
            if (target := int(targets[row, place])) != IGNORE:
                logits = model.table[tokens[row, place]].tolist()
                bits = -math.log2(math.exp(logits[target]) / sum(map(math.exp, logits)))
                right = logits[target] == max(logits)
                expected.setdefault(int(item[row]), []).append((bits, right))
    for chunk in (6, 13, 1024):
        monkeypatch.setitem(scoring.CHUNK, "cpu", chunk)
        found = scoring.scores(model, tokens, targets)  # type: ignore[arg-type]
        rows = Rows()
        scoring.add_items(rows, [found], item, mode="same targets", length=6)
        scoring.add_positions(rows, found, 6)
        bits, right, exact = (read(rows, kind, "item", "weight") for kind in ("bits", "right", "exact"))
        assert {key: (bits[key], right[key], exact[key]) for key in bits} == {
            (number, len(each)): (
                pytest.approx(sum(b for b, _ in each) / len(each), rel=1e-6),
                pytest.approx(sum(r for _, r in each) / len(each), rel=1e-6),
                float(all(r for _, r in each)),
            )
            for number, each in expected.items()
        }
        assert exact[4, 6] == 1
        assert 9 not in {number for number, _ in bits}
        for (position, weight), value in read(rows, "position", "position", "weight").items():
            asked = [row for row in range(7) if targets[row, position] != IGNORE]
            logits = model.table[tokens[asked, position]]
            chosen = logits.log_softmax(-1)[range(len(asked)), targets[asked, position]]
            assert weight == len(asked)
            assert value == pytest.approx(float(-chosen.mean()) / math.log(2), rel=1e-6)


def test_the_head_is_computed_where_something_is_asked_only() -> None:
    hidden = torch.arange(24.0).view(2, 3, 4)
    targets = torch.tensor([[IGNORE, 1, IGNORE], [2, IGNORE, 0]])
    batch = Placed(torch.zeros_like(targets), targets, Positions.arange(1, 3), torch.device("cpu"))
    assert batch.at_targets(hidden)[:, 0].tolist() == [4, 12, 20]
    assert batch.targets.tolist() == [1, 2, 0]
    every = Placed(targets, targets.clamp(min=0), Positions.arange(1, 3), torch.device("cpu"))
    assert torch.equal(every.at_targets(hidden), hidden.flatten(0, 1))


# Attention ------------------------------------------------------------------------------------------------------------


class Shown(Task):
    """Random rows; two links in the second and the last one."""

    name: str = "shown"
    length: int = 6
    lengths: tuple[int, ...] = (6,)
    both_ways: bool = False

    title: ClassVar[Words] = Words("shown", "shown")
    unit: ClassVar[Words] = Words("tokens", "tokens")
    measure = "bits"

    @property
    def causal(self) -> bool:  # type: ignore[override]
        return not self.both_ways

    @property
    def vocabulary(self) -> int:
        return 5

    def tokens(self, length: int) -> int:
        return length

    def training_batch(self, rows: int, random: torch.Generator, text: object) -> Batch:
        raise NotImplementedError

    def scored(self, length: int, text: object) -> Batch:
        tokens = torch.randint(5, (20, length), generator=seeded(7))
        links = (Link("a→b", 1, 4, 2), Link("c→d", 19, 5, 0))
        return Batch(tokens, tokens, torch.arange(100, 120), links)

    def chance(self, length: int) -> float:
        return math.log2(5)


def by_hand(model: Transformer, tokens: Tensor, layer: int, causal: bool, word: str) -> Tensor:
    """Probabilities [b, h, i, j] of a layer by loops in fp64, for ALiBi and rotations of interleaved pairs."""
    x = model.embedding(tokens)
    at = model.prepare(Positions.arange(1, tokens.shape[1]))
    for n in range(layer):
        x = model.layers[n](x, model.encoding(n), at, None)
    own = model.layers[layer]
    q, k, _ = own.qkv(own.before_attention(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4).double()
    rows, heads, tokens_, d = q.shape
    probs = torch.zeros(rows, heads, tokens_, tokens_, dtype=torch.float64)
    for row in range(rows):
        for head in range(heads):
            for i in range(tokens_):
                seen = range(i + 1) if causal else range(tokens_)
                logits = []
                for j in seen:
                    logit = 0.0
                    for pair in range(d // 2):
                        angle = (j - i) * 10000 ** (-2 * pair / d) if word == "rope" else 0.0
                        qx, qy = q[row, head, i, 2 * pair : 2 * pair + 2].tolist()
                        kx, ky = k[row, head, j, 2 * pair : 2 * pair + 2].tolist()
                        logit += qx * (kx * math.cos(angle) - ky * math.sin(angle))
                        logit += qy * (kx * math.sin(angle) + ky * math.cos(angle))
                    slope = 2.0 ** (-8 * (head + 1) / heads) if word == "alibi" else 0.0
                    logits.append(logit / math.sqrt(d) - slope * abs(i - j))
                total = sum(map(math.exp, logits))
                for j, logit in zip(seen, logits, strict=True):
                    probs[row, head, i, j] = math.exp(logit) / total
    return probs


@torch.no_grad()
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("word", ["rope", "alibi", "nope"])
def test_attention_by_distance_is_that_of_loops(word: str, both_ways: bool) -> None:
    task = Shown(both_ways=both_ways)
    model = Transformer(Arm(word), SMALL, vocabulary=5, causal=task.causal, positions=6, seed=0)
    rows = Rows()
    Profile(task, None, 100).look(model, 30, rows)
    found = read(rows, "attention", "step", "layer", "head", "position")
    tokens = task.scored(6, None).tokens[[1, 19]]  # the rows that have links
    assert {distance for *_, distance in found} == set(range(-5 if both_ways else 0, 6))
    for layer in range(2):
        probs = by_hand(model, tokens, layer, task.causal, word)
        for head in range(2):
            for distance in range(-5 if both_ways else 0, 6):
                met = [float(probs[:, head, i, i - distance].mean()) for i in range(6) if 0 <= i - distance < 6]
                assert found[30, layer, head, distance] == pytest.approx(sum(met) / len(met), abs=1e-6)
            links = read(rows, "link", "layer", "head", "note", "item", "weight")
            even = (1 / 6, 1 / 6) if both_ways else (1 / 5, 1 / 6)
            for row, (note, item, query, key) in enumerate([("a→b", 101, 4, 2), ("c→d", 119, 5, 0)]):
                (value,) = [
                    value for (*where, weight), value in links.items()
                    if where == [layer, head, note, item] and weight == pytest.approx(even[row])
                ]  # fmt: skip
                assert value == pytest.approx(float(probs[row, head, query, key]), abs=1e-6)


def test_rows_that_are_watched_change_nothing() -> None:
    model = Transformer(Arm("rope"), SMALL, vocabulary=5, causal=True, positions=6, seed=0).eval()
    tokens, at = Shown().scored(6, None).tokens, model.prepare(Positions.arange(1, 6))
    seen = []
    assert torch.equal(model.hidden(tokens, at), model.hidden(tokens, at, watcher=lambda *each: seen.append(each)))
    assert len(seen) == 2


def test_steps_that_are_looked_at() -> None:
    assert Profile(Shown(), None, 1000).steps == {0, 30, 100, 300, 1000}
    assert Profile(Shown(), None, 2).steps == {0, 1, 2}


def test_similarity_is_the_cosine_of_the_rows_of_the_table() -> None:
    table = Learned(4, 130)
    rows = Rows()
    add_similarity(rows, table, 7)
    found = read(rows, "similarity", "step", "position", "other")
    chosen = range(0, 130, 3)
    assert found.keys() == {(7, p, other) for p in chosen for other in chosen}
    for _, p, other in list(found)[::97]:
        one, two = table.table[p].tolist(), table.table[other].tolist()
        cosine = sum(a * b for a, b in zip(one, two, strict=True)) / math.hypot(*one) / math.hypot(*two)
        assert found[7, p, other] == pytest.approx(cosine, abs=1e-6)


# Changed frequencies --------------------------------------------------------------------------------------------------


def rope() -> RoPE:
    made = lookup.create("rope", d_model=64, n_heads=2)
    assert isinstance(made, RoPE)
    return made


def test_interpolation_is_dividing_positions() -> None:
    x = torch.randn(1, 2, 40, 32, generator=seeded(0))
    squeezed = Positions.at(torch.arange(40)[None] / 5)
    ours = changed(rope(), "interpolation", 5.0, 8).rotate(x, Positions.arange(1, 40), "query")
    assert torch.allclose(ours, rope().rotate(x, squeezed, "query"), atol=1e-6)
    assert not torch.allclose(ours, rope().rotate(x, Positions.arange(1, 40), "query"), atol=1e-2)


def test_ntk_is_another_base() -> None:
    """base·s^(d/(d-2)): the slowest pair slows by s, the fastest not at all. Peng et al. 2023, section 3.1."""
    found = list(changed(rope(), "ntk", 4.0, 64).frequencies)
    base = 10000 * 4 ** (32 / 30)
    assert found == pytest.approx([base ** (-2 * i / 32) for i in range(16)], rel=1e-12)
    assert found[0] == 1
    assert found[-1] == pytest.approx(10000 ** (-30 / 32) / 4, rel=1e-12)


def test_yarn_leaves_fast_pairs_and_divides_slow_ones() -> None:
    """Ramp between 32 turns and 1 turn in the trained length, in whole pairs; logits times (0.1 ln s + 1)²."""
    s, trained, d = 8.0, 1024, 32
    turned = changed(rope(), "yarn", s, trained)
    plain = [10000 ** (-2 * i / d) for i in range(16)]
    low, high = (d * math.log(trained / (2 * math.pi * beta)) / (2 * math.log(10000)) for beta in (32, 1))
    low, high = math.floor(low), math.ceil(high)
    assert (low, high) == (2, 9)
    for i, (w, ours) in enumerate(zip(plain, turned.frequencies, strict=True)):
        share = min(max((i - low) / (high - low), 0), 1)
        assert ours == pytest.approx(w * (1 - share) + w / s * share, rel=1e-12)
    q, k = torch.randn(2, 1, 2, 1, 32, generator=seeded(1), dtype=torch.float64)
    here = Positions.arange(1, 1)  # at one position nothing turns: only the magnitude is left
    ratio = (turned.rotate(q, here, "query") * turned.rotate(k, here, "key")).sum() / (q * k).sum()
    assert float(ratio) == pytest.approx((0.1 * math.log(s) + 1) ** 2, rel=1e-12)


@pytest.mark.parametrize("change", ["interpolation", "ntk", "yarn"])
def test_at_the_trained_length_nothing_is_changed(change: str) -> None:
    own = rope()
    assert changed(own, change, 1.0, 64) is own
    assert changed(own, change, 2.0, 64).layout == own.layout


# Oracles --------------------------------------------------------------------------------------------------------------


def test_an_oracle_sees_as_many_tokens() -> None:
    training = Training(steps=100, rows=16)
    trial = Trial(task=Shown(length=6, lengths=(6, 48)), encoding="rope", seed=0, size=SMALL, training=training)
    assert plan(trial) == (trial.task, 100, 16)
    task, steps, rows = plan(trial.model_copy(update={"oracle": True}))
    assert (task.length, steps, rows) == (48, 100, 2)
    few = trial.model_copy(update={"oracle": True, "training": Training(steps=100, rows=4)})
    _, steps, rows = plan(few)
    assert (steps, rows) == (50, 1)  # 4·6 tokens a step are half a row of 48
